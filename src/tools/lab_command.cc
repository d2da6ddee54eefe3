#include "tools/lab_command.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/command_line.h"
#include "tools/lab/actions.h"
#include "tools/launch_options.h"
#include "tools/usage_message.h"

namespace syncopate::tools {
namespace {

using labtool::Arguments;
using Action = int (*)(const Arguments&);

constexpr char kLabExamples[] =
    "Examples:\n"
    "  syncopate lab up labs/two-racks.toml\n"
    "  syncopate lab status\n"
    "  syncopate lab exec h0 -- iperf3 -c h4\n"
    "  syncopate lab run -- ./my_training\n"
    "  syncopate lab link rack1 rack0 rate 50mbit\n"
    "  syncopate lab down\n"
    "docs/lab.md describes the files and everything else. Needs root and iproute2.";

// Registers one sub-command; the arguments live as long as the app.
class Adder {
 public:
  Adder(CLI::App* lab, int& exit_code) : lab_(lab), exit_code_(exit_code) {}

  CLI::App* Add(const std::string& name, const std::string& description,
                const std::shared_ptr<Arguments>& arguments, Action action) const {
    CLI::App* command = lab_->add_subcommand(name, description);
    int& exit_code = exit_code_;
    command->callback([arguments, action, &exit_code] { exit_code = action(*arguments); });
    return command;
  }

  // One whose words are left to the action; `verb` is put before them if it is not empty. Those of
  // changes may hold options.
  CLI::App* AddWords(const std::string& name, const std::string& description,
                     const std::shared_ptr<Arguments>& arguments, Action action,
                     const std::string& verb) const {
    CLI::App* command = lab_->add_subcommand(name, description);
    command->prefix_command();
    AddLabOption(command, arguments);
    int& exit_code = exit_code_;
    command->callback([command, arguments, action, verb, &exit_code] {
      const absl::Status usage =
          action == labtool::Exec ? CheckWordsLeft(*command) : absl::OkStatus();
      if (!usage.ok()) {
        exit_code = Complain(absl::StrCat("lab ", command->get_name()), usage);
        return;
      }
      if (!verb.empty()) arguments->words.push_back(verb);
      for (const std::string& word : command->remaining()) arguments->words.push_back(word);
      exit_code = action(*arguments);
    });
    return command;
  }

  // One whose words are the program of a job.
  CLI::App* AddJob(const std::string& name, const std::string& description,
                   const std::shared_ptr<Arguments>& arguments, Action action) const {
    CLI::App* command = lab_->add_subcommand(name, description);
    arguments->launch.name = absl::StrCat("lab ", name);
    AddLaunchOptions(*command, arguments->launch);
    AddLabOption(command, arguments);
    int& exit_code = exit_code_;
    command->callback([command, arguments, action, &exit_code] {
      const absl::Status usage = CheckWordsLeft(*command);
      arguments->launch.command = command->remaining();
      exit_code = usage.ok() ? action(*arguments) : Complain(arguments->launch.name, usage);
    });
    return command;
  }

  static void AddLabOption(CLI::App* command, const std::shared_ptr<Arguments>& arguments) {
    command->add_option("--lab", arguments->lab, "Which lab; not needed if only one is up")
        ->type_name("NAME");
  }

 private:
  CLI::App* lab_;
  int& exit_code_;
};

void AddLifecycle(const Adder& adder) {
  auto up = std::make_shared<Arguments>();
  CLI::App* command = adder.Add("up", "Make a lab from its file", up, labtool::Up);
  command->add_option("file", up->file, "TOML file")->required();
  command->add_option("--name", up->name, "Call it this instead of what the file says");
  command->footer(
      "Examples:\n  syncopate lab up labs/two-racks.toml\n"
      "  syncopate lab up labs/two-racks.toml --name second");

  auto down = std::make_shared<Arguments>();
  command = adder.Add("down", "End all that runs in a lab and take it away", down, labtool::Down);
  command->add_option("lab", down->lab, "Which lab; not needed if only one is up");
  command->add_flag("--all", down->all, "All labs");
  command->footer(
      "Works on whatever is left of a lab, also after a crash.\n"
      "Examples:\n  syncopate lab down\n  syncopate lab down --all");

  auto list = std::make_shared<Arguments>();
  command = adder.Add("list", "The labs that are up", list, labtool::List);
  command->add_flag("--json", list->json, "Print JSON");

  auto topology = std::make_shared<Arguments>();
  command =
      adder.Add("topology", "Print the network that a lab's file declares, for syncopate plan",
                topology, labtool::PrintTopology);
  command->add_option("file", topology->file, "TOML file")->required();
  command->footer(
      "Example:\n  syncopate lab topology labs/two-racks.toml >net.json\n"
      "  syncopate plan --topology net.json --bytes 10M --explain");
}

void AddReports(const Adder& adder) {
  auto status = std::make_shared<Arguments>();
  CLI::App* command = adder.Add("status", "Picture of a lab: hosts, links, rates, load now", status,
                                labtool::Status);
  command->add_option("lab", status->lab, "Which lab; not needed if only one is up");
  command->add_option("--seconds", status->seconds, "How long to look at the load (0.3)");
  command->add_flag("--json", status->json, "Print JSON");
  command->footer("Example:\n  syncopate lab status two-racks --seconds 2");

  auto check = std::make_shared<Arguments>();
  command =
      adder.Add("check", "Measure by iperf3 whether a lab holds its rates", check, labtool::Check);
  command->add_option("lab", check->lab, "Which lab; not needed if only one is up");
  command->add_option("--only", check->only, "single, shared or all (the hosts at once)");
  command->add_option("--seconds", check->seconds, "Length of each measurement (2)");
  command->add_flag("--json", check->json, "Print JSON");
  command->footer(
      "Rates are those of TCP's payload, 95.6 % of the shaped ones.\n"
      "Exit code 1 if they do not hold within 5 %.\n"
      "Example:\n  syncopate lab check two-racks --only all");
}

void AddRun(const Adder& adder) {
  auto run = std::make_shared<Arguments>();
  CLI::App* command =
      adder.AddJob("run", "Run a program as a job on the hosts: syncopate launch in the lab", run,
                   labtool::RunJob);
  command->add_option("--slots", run->slots, "Ranks on each host (1)")
      ->type_name("N")
      ->excludes(command->get_option("-n"))
      ->excludes(command->get_option("-H"))
      ->excludes(command->get_option("--hostfile"));
  command->footer(
      "Without -n, -H and --slots there is one rank on each host. -H names hosts of the lab.\n"
      "The exit code and everything else is as with syncopate launch.\n"
      "Examples:\n  syncopate lab run -- ./my_training\n"
      "  syncopate lab run --slots 2 --timeout 10m -- ./my_training\n"
      "  syncopate lab run -H h0,h4 --on-failure continue -x SYNCOPATE_DEBUG=INFO -- "
      "./my_training");
}

void AddPrograms(const Adder& adder) {
  auto exec = std::make_shared<Arguments>();
  CLI::App* command = adder.AddWords("exec", "Run a program on a host", exec, labtool::Exec, "");
  command->footer(
      "syncopate lab exec [--lab NAME] HOST -- PROGRAM...\n"
      "The hosts know each other by name. The exit code is the program's; 127 or 126 if "
      "it cannot be run.\n"
      "Examples:\n  syncopate lab exec h0 -- iperf3 -s\n"
      "  syncopate lab exec --lab second h3 -- bash");

  AddRun(adder);
}

void AddChanges(const Adder& adder) {
  struct Verb {
    const char* name;
    const char* description;
    const char* footer;
  };
  static constexpr Verb kVerbs[] = {
      {"link", "Change the rate of a link",
       "syncopate lab link A B rate RATE [--one-way] [--as NAME]\n"
       "--one-way: only from A to B. RATE: 50mbit, 1.5gbit, none.\n"
       "Example:\n  syncopate lab link rack1 rack0 rate 50mbit"},
      {"cut", "Let packets get lost: all of a host or switch, a link, or between two hosts",
       "syncopate lab cut A [B] [--one-way in|out] [--as NAME]\n"
       "in: nothing reaches A any more. out: nothing of A arrives any more. Nobody is told.\n"
       "Examples:\n  syncopate lab cut h3\n  syncopate lab cut h3 --one-way out\n"
       "  syncopate lab cut h0 h5"},
      {"flow", "Add a flow of TCP, or of UDP, in the background",
       "syncopate lab flow add A B [--udp] [--rate RATE] [--seconds S] [--as NAME]\n"
       "Without a rate as much as it gets; ends by itself (600 s unless given). With --udp it "
       "sends at\n"
       "its rate, which must be given, whatever is lost on the way: contention that repeats.\n"
       "Examples:\n  syncopate lab flow add h0 h4 --seconds 60\n"
       "  syncopate lab flow add h0 h4 --udp --rate 100mbit"},
      {"slow", "Make a host compute more slowly",
       "syncopate lab slow HOST FACTORx [--cores C] [--as NAME]\n"
       "Its processes get 1/FACTOR of C cores in all. Without --cores: of a core, or of the "
       "host's\n"
       "fair part of the machine if that is less.\n"
       "Example:\n  syncopate lab slow h3 5x"},
  };
  for (const Verb& verb : kVerbs) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        adder.AddWords(verb.name, verb.description, arguments, labtool::MakeChange, verb.name);
    command->add_option("--as", arguments->as, "A name for the change; without, one is made up");
    command->footer(verb.footer);
  }

  auto undo = std::make_shared<Arguments>();
  CLI::App* command = adder.Add("undo", "Undo a change by its name", undo, labtool::Undo);
  command->add_option("change", undo->name, "As it was printed; syncopate lab status lists them")
      ->required();
  Adder::AddLabOption(command, undo);
  command->footer("Example:\n  syncopate lab undo rate1");

  auto scenario = std::make_shared<Arguments>();
  command = adder.Add("scenario", "Play changes at given times from a file", scenario,
                      labtool::PlayScenario);
  command->add_option("file", scenario->file, "TOML file")->required();
  Adder::AddLabOption(command, scenario);
  command->add_flag("--keep", scenario->keep, "Do not undo the changes that stand at the end");
  command->footer(
      "Ctrl-C ends it and undoes what it has changed.\n"
      "Example:\n  syncopate lab scenario labs/scenarios/squeeze.toml");
}

}  // namespace

void AddLabCommand(CLI::App& app, int& exit_code) {
  CLI::App* lab = app.add_subcommand("lab", "An emulated cluster on this machine");
  lab->require_subcommand(1);
  lab->footer(kLabExamples);
  const Adder adder(lab, exit_code);
  AddLifecycle(adder);
  AddPrograms(adder);
  AddReports(adder);
  AddChanges(adder);
}

}  // namespace syncopate::tools
