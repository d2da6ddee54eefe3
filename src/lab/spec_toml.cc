// The text form of a lab.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "lab/spec.h"
#include "lab/toml_reader.h"

namespace syncopate::lab {
namespace {

// Values for what a table leaves out.
struct Defaults {
  int64_t nic = 0;
  int64_t uplink = 0;
  double delay = 0;
  int64_t queue_bytes = 0;
};

class LabReader {
 public:
  explicit LabReader(absl::string_view place) : place_(place) {}

  absl::StatusOr<Spec> Read(const toml::table& table) {
    TableReader file(table, place_, "the file");
    const toml::table* lab = file.Table("lab");
    const std::vector<const toml::table*> switches = file.Tables("switch");
    const std::vector<const toml::table*> hosts = file.Tables("host");
    const std::vector<const toml::table*> links = file.Tables("link");
    const std::vector<const toml::table*> meshes = file.Tables("mesh");
    const std::vector<const toml::table*> flows = file.Tables("flow");
    SYNCOPATE_RETURN_IF_ERROR(file.Finish());
    if (lab == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(place_, ": there is no [lab]; begin with [lab] and name = \"my-lab\""));
    }
    SYNCOPATE_RETURN_IF_ERROR(ReadLabTable(*lab));
    for (const toml::table* each : switches) SYNCOPATE_RETURN_IF_ERROR(ReadSwitch(*each));
    for (const toml::table* each : hosts) SYNCOPATE_RETURN_IF_ERROR(ReadHost(*each));
    for (const toml::table* each : links) SYNCOPATE_RETURN_IF_ERROR(ReadLink(*each));
    for (const toml::table* each : meshes) SYNCOPATE_RETURN_IF_ERROR(ReadMesh(*each));
    for (const toml::table* each : flows) SYNCOPATE_RETURN_IF_ERROR(ReadFlow(*each));
    const absl::Status valid = Validate(spec_);
    if (!valid.ok()) return At(place_, valid);
    return std::move(spec_);
  }

 private:
  absl::Status ReadLabTable(const toml::table& table) {
    TableReader reader(table, place_, "[lab]");
    spec_.name = reader.NeededText("name", "\"my-lab\"");
    spec_.congestion = reader.Text("congestion", "");
    spec_.fixed_cores = reader.Flag("fixed_cores");
    defaults_.nic = reader.Rate("nic", 0);
    defaults_.uplink = reader.Rate("uplink", 0);
    defaults_.delay = reader.Seconds("delay", 0);
    defaults_.queue_bytes = reader.Bytes("queue", 0);
    return reader.Finish();
  }

  absl::Status AddNode(const TableReader& reader, const std::string& name, bool is_host,
                       bool bystander, double cores) {
    const absl::Status good = CheckName(name, kNodeNameBytesMax);
    if (!good.ok()) return reader.Fault(good.message());
    if (nodes_.count(name) != 0) {
      return reader.Fault(absl::StrCat("the name ", name, " is taken; choose another"));
    }
    nodes_[name] = static_cast<int>(spec_.nodes.size());
    spec_.nodes.push_back({name, is_host, bystander, cores});
    return absl::OkStatus();
  }

  absl::StatusOr<int> NodeOf(const TableReader& reader, const std::string& name) {
    const auto found = nodes_.find(name);
    if (found != nodes_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, index] : nodes_) names.push_back(known);
    return reader.Fault(absl::StrCat(
        "there is no host or switch \"", name, "\"",
        names.empty() ? "; switches are listed before what hangs on them" : "; so far there are ",
        absl::StrJoin(names, ", ")));
  }

  void AddLink(int a, int b, int64_t forward, int64_t back, double delay, int64_t queue_bytes) {
    Link link;
    link.a = a;
    link.b = b;
    link.rate_forward = forward;
    link.rate_back = back;
    link.delay = delay;
    link.queue_bytes = queue_bytes;
    spec_.links.push_back(link);
  }

  absl::Status ReadSwitch(const toml::table& table) {
    TableReader reader(table, place_, "[[switch]]");
    const std::string name = reader.NeededText("name", "\"rack0\"");
    const std::string parent = reader.Text("parent", "");
    const int64_t out = reader.Rate("uplink", defaults_.uplink);
    const int64_t in = reader.Rate("uplink_in", out);
    const double delay = reader.Seconds("delay", defaults_.delay);
    const int64_t queue = reader.Bytes("queue", defaults_.queue_bytes);
    SYNCOPATE_RETURN_IF_ERROR(reader.Finish());
    SYNCOPATE_RETURN_IF_ERROR(AddNode(reader, name, false, false, 0));
    if (parent.empty()) return absl::OkStatus();
    SYNCOPATE_ASSIGN_OR_RETURN(const int above, NodeOf(reader, parent));
    AddLink(nodes_[name], above, out, in, delay, queue);
    return absl::OkStatus();
  }

  absl::Status ReadHost(const toml::table& table) {
    TableReader reader(table, place_, "[[host]]");
    const std::string name = reader.NeededText("name", "\"h\"");
    const bool several = reader.Has("count");
    const int64_t count = reader.Int("count", 1, 1, kHostsMax);
    const std::string hub = reader.Text("switch", "");
    const bool bystander = reader.Flag("bystander");
    const double cores = reader.Number("cores", 0, kCoresMin, kCoresMax);
    const int64_t out = reader.Rate("nic", defaults_.nic);
    const int64_t in = reader.Rate("nic_in", out);
    const double delay = reader.Seconds("delay", defaults_.delay);
    const int64_t queue = reader.Bytes("queue", defaults_.queue_bytes);
    SYNCOPATE_RETURN_IF_ERROR(reader.Finish());
    if (spec_.nodes.size() + static_cast<size_t>(count) > kHostsMax + kSwitchesMax) {
      return reader.Fault(
          absl::StrCat("these are too many hosts; at most ", kHostsMax, " are possible"));
    }
    for (int64_t i = 0; i < count; ++i) {
      const std::string full = several ? absl::StrCat(name, numbered_[name]++) : name;
      SYNCOPATE_RETURN_IF_ERROR(AddNode(reader, full, true, bystander, cores));
      if (hub.empty()) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const int above, NodeOf(reader, hub));
      if (spec_.nodes[above].is_host) {
        return reader.Fault(absl::StrCat(hub, " is a host, not a switch; join hosts by [[link]]"));
      }
      AddLink(nodes_[full], above, out, in, delay, queue);
    }
    return absl::OkStatus();
  }

  absl::Status ReadLink(const toml::table& table) {
    TableReader reader(table, place_, "[[link]]");
    const std::vector<std::string> ends = reader.Texts("between", "[\"rack0\", \"rack1\"]");
    const int64_t forward = reader.Rate("rate", 0);
    const int64_t back = reader.Rate("rate_back", forward);
    const double delay = reader.Seconds("delay", defaults_.delay);
    const int64_t queue = reader.Bytes("queue", defaults_.queue_bytes);
    SYNCOPATE_RETURN_IF_ERROR(reader.Finish());
    if (ends.size() != 2 || ends[0] == ends[1]) {
      return reader.Fault("between names two different hosts or switches");
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const int a, NodeOf(reader, ends[0]));
    SYNCOPATE_ASSIGN_OR_RETURN(const int b, NodeOf(reader, ends[1]));
    AddLink(a, b, forward, back, delay, queue);
    return absl::OkStatus();
  }

  absl::Status ReadMesh(const toml::table& table) {
    TableReader reader(table, place_, "[[mesh]]");
    const std::vector<std::string> names = reader.Texts("nodes", "[\"h0\", \"h1\", \"h2\"]");
    const int64_t rate = reader.Rate("rate", 0);
    const double delay = reader.Seconds("delay", defaults_.delay);
    const int64_t queue = reader.Bytes("queue", defaults_.queue_bytes);
    SYNCOPATE_RETURN_IF_ERROR(reader.Finish());
    if (names.size() > kHostsMax) {
      return reader.Fault(absl::StrCat("at most ", kHostsMax, " nodes are possible"));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      SYNCOPATE_ASSIGN_OR_RETURN(const int a, NodeOf(reader, names[i]));
      for (size_t j = i + 1; j < names.size(); ++j) {
        SYNCOPATE_ASSIGN_OR_RETURN(const int b, NodeOf(reader, names[j]));
        AddLink(a, b, rate, rate, delay, queue);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadFlow(const toml::table& table) {
    TableReader reader(table, place_, "[[flow]]");
    const std::string from = reader.NeededText("from", "\"h0\"");
    const std::string to = reader.NeededText("to", "\"h1\"");
    BackgroundFlow flow;
    flow.rate = reader.Rate("rate", 0);
    flow.seconds = static_cast<int>(reader.Int("seconds", kFlowSecondsDefault, 1, kFlowSecondsMax));
    flow.udp = reader.Flag("udp");
    SYNCOPATE_RETURN_IF_ERROR(reader.Finish());
    SYNCOPATE_ASSIGN_OR_RETURN(flow.from, NodeOf(reader, from));
    SYNCOPATE_ASSIGN_OR_RETURN(flow.to, NodeOf(reader, to));
    if (flow.from == flow.to || !spec_.nodes[flow.from].is_host || !spec_.nodes[flow.to].is_host) {
      return reader.Fault("a flow goes from one host to another");
    }
    spec_.flows.push_back(flow);
    return absl::OkStatus();
  }

  const std::string place_;
  Spec spec_;
  Defaults defaults_;
  std::map<std::string, int> nodes_;
  std::map<std::string, int> numbered_;  // hosts so far by the name before their number
};

}  // namespace

absl::StatusOr<Spec> ParseLab(absl::string_view text, absl::string_view place) {
  SYNCOPATE_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, place));
  return LabReader(place).Read(table);
}

std::string ToToml(const Spec& spec) {
  std::string text = absl::StrCat("[lab]\nname = \"", spec.name, "\"\n");
  if (!spec.congestion.empty()) absl::StrAppend(&text, "congestion = \"", spec.congestion, "\"\n");
  if (spec.fixed_cores) absl::StrAppend(&text, "fixed_cores = true\n");
  // Switches come before hosts when it is read back; links name their ends.
  for (const bool is_host : {false, true}) {
    for (const Node& node : spec.nodes) {
      if (node.is_host != is_host) continue;
      absl::StrAppend(&text, is_host ? "[[host]]" : "[[switch]]", "\nname = \"", node.name, "\"\n");
      if (node.bystander) absl::StrAppend(&text, "bystander = true\n");
      if (node.cores > 0) absl::StrAppendFormat(&text, "cores = %.17g\n", node.cores);
    }
  }
  for (const Link& link : spec.links) {
    absl::StrAppend(&text, "[[link]]\nbetween = [\"", spec.nodes[link.a].name, "\", \"",
                    spec.nodes[link.b].name, "\"]\nrate = \"", FormatLinkRate(link.rate_forward),
                    "\"\n");
    if (link.rate_back != link.rate_forward) {
      absl::StrAppend(&text, "rate_back = \"", FormatLinkRate(link.rate_back), "\"\n");
    }
    if (link.delay > 0)
      absl::StrAppend(&text, "delay = \"", absl::StrFormat("%.17g", link.delay), "s\"\n");
    if (link.queue_bytes > 0) absl::StrAppend(&text, "queue = \"", link.queue_bytes, "\"\n");
  }
  for (const BackgroundFlow& flow : spec.flows) {
    absl::StrAppend(&text, "[[flow]]\nfrom = \"", spec.nodes[flow.from].name, "\"\nto = \"",
                    spec.nodes[flow.to].name, "\"\nrate = \"", FormatLinkRate(flow.rate),
                    "\"\nseconds = ", flow.seconds, flow.udp ? "\nudp = true\n" : "\n");
  }
  return text;
}

}  // namespace syncopate::lab
