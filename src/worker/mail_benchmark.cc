// What mail between workers takes, and what it costs beside collectives. Ranks are started by a launcher:
//
//   syncopate launch -n 2 -- mail_benchmark latency 2000
//     half a round trip of 64 bytes as messages, as send-receives, and as the plainest wake-ups of a
//     sleeping thread (an eventfd, a TCP connection on the loopback), taken in turns, in microseconds.
//     All of them between two cores: to wake a thread on one's own core takes a fraction of that
//   syncopate launch -n 3 -- mail_benchmark ask 2000
//     a request of 64 bytes to a service of rank 0 and its answer, asked by the last rank, beside a
//     message to rank 0 and back, taken in turns; all workers are idle
//   syncopate launch -n 4 -- mail_benchmark beside 104857600 10 10 1000
//     10 turns of 10 all-reduces of 100 MiB alone, beside a thread of each worker that wakes up every
//     millisecond, and beside such a thread that sends 1,000 messages a second: the ratios of their times,
//     and beside them that of two rounds alone (A/A)
//
// The same on hosts: syncopate lab run LAB -- mail_benchmark ...
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"

namespace syncopate::worker {
namespace {

constexpr size_t kBytes = 64;
constexpr int kBatch = 50;  // round trips of one kind in a row

// The value below which this part of them lies.
double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(part * static_cast<double>(values.size())))];
}

void Fatal(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "mail_benchmark: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Half the time of each of kBatch round trips, in microseconds.
void Measure(const std::function<void()>& round_trip, std::vector<double>& times) {
  for (int i = 0; i < kBatch; ++i) {
    const int64_t begin_ns = MonotonicClock().NowNs();
    round_trip();
    times.push_back(static_cast<double>(MonotonicClock().NowNs() - begin_ns) / 2000);
  }
}

// A thread, 0 for this one, and those that it makes run on one core from now on.
void KeepToCore(pid_t thread, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(core) % std::max(std::thread::hardware_concurrency(), 1u), &cores);
  if (sched_setaffinity(thread, sizeof(cores), &cores) != 0) {
    std::fprintf(stderr, "mail_benchmark: cannot keep to core %d\n", core);
  }
}

// The same for all threads of this process.
void KeepAllToCore(int core) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(task.path().filename().string(), &thread)) KeepToCore(thread, core);
  }
}

// A thread that sleeps in poll() and sends back what comes to it; in this process, so that only the
// wake-ups differ from what a transport does.
class Echo {
 public:
  // Reads from `in` and writes to `out`; their other ends are `there` and `back`.
  Echo(UniqueFd in, UniqueFd out, UniqueFd there, UniqueFd back)
      : there_(std::move(there)), back_(std::move(back)) {
    thread_ = std::thread([in = std::move(in), out = std::move(out)] {
      KeepToCore(0, 1);
      while (Pass(in, out)) {
      }
    });
  }
  ~Echo() {
    Put(there_, 'e');
    thread_.join();
  }
  void RoundTrip() {
    Put(there_, 'p');
    char bytes[kBytes];
    Get(back_, bytes);
  }

 private:
  static void Put(const UniqueFd& fd, char what) {
    char bytes[kBytes] = {what};  // eventfds take the first 8 of them, which is not 0
    if (write(fd.get(), bytes, kBytes) < 0 && write(fd.get(), bytes, 8) < 0) std::abort();
  }
  static void Get(const UniqueFd& fd, char* bytes) {
    pollfd ready = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    poll(&ready, 1, -1);
    if (read(fd.get(), bytes, kBytes) <= 0) std::abort();
  }
  static bool Pass(const UniqueFd& in, const UniqueFd& out) {
    char bytes[kBytes];
    Get(in, bytes);
    if (bytes[0] == 'e') return false;
    Put(out, 'p');
    return true;
  }

  const UniqueFd there_, back_;
  std::thread thread_;
};

std::unique_ptr<Echo> EventEcho() {
  UniqueFd there(eventfd(0, EFD_NONBLOCK)), back(eventfd(0, EFD_NONBLOCK));
  UniqueFd in(dup(there.get())), out(dup(back.get()));
  return std::make_unique<Echo>(std::move(in), std::move(out), std::move(there), std::move(back));
}

std::unique_ptr<Echo> TcpEcho() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), plain, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), plain, &size) != 0) {
    std::abort();
  }
  UniqueFd there(socket(AF_INET, SOCK_STREAM, 0));
  if (connect(there.get(), plain, size) != 0) std::abort();
  UniqueFd in(accept(listener.get(), nullptr, nullptr));
  const int one = 1;
  for (const UniqueFd* end : {&there, &in}) {
    setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  UniqueFd out(dup(in.get())), back(dup(there.get()));
  return std::make_unique<Echo>(std::move(in), std::move(out), std::move(there), std::move(back));
}

void PrintRow(const char* what, const std::vector<double>& times) {
  std::printf("%-28s p50 %8.1f  p90 %8.1f  p99 %8.1f us\n", what, Quantile(times, 0.5),
              Quantile(times, 0.9), Quantile(times, 0.99));
}

// Both workers are idle while messages go back and forth: each is taken by a handler, which sends the
// next one.
void Latency(Worker& worker, int rounds) {
  KeepAllToCore(worker.rank());
  std::mutex mutex;
  std::condition_variable changed;
  int batches = 0;  // that have ended
  const bool first = worker.rank() == 0;
  const std::string message(kBytes, 'm');
  std::vector<double> messages, transfers, events, connections;
  int64_t sent_ns = 0;
  Fatal(worker.Receive("ping", [&](Mail mail) {
    if (mail.kind != Mail::Kind::kMessage) return;
    if (!first) return Fatal(worker.Send(0, "ping", mail.bytes));
    const int64_t now_ns = MonotonicClock().NowNs();
    messages.push_back(static_cast<double>(now_ns - sent_ns) / 2000);
    if (messages.size() % kBatch == 0) {
      for (const int to : {0, 1}) Fatal(worker.Send(to, "end of batch", "x"));
      return;
    }
    sent_ns = now_ns;
    Fatal(worker.Send(1, "ping", message));
  }));
  Fatal(worker.Receive("end of batch", [&](Mail mail) {
    if (mail.kind != Mail::Kind::kMessage) return;
    std::lock_guard<std::mutex> lock(mutex);
    ++batches;
    changed.notify_one();
  }));
  const std::unique_ptr<Echo> event_echo = EventEcho(), tcp_echo = TcpEcho();
  char data[kBytes] = {};
  const Array array = {data, kBytes / sizeof(float), DataType::kFloat32};
  for (int batch = 0; batch * kBatch < rounds; ++batch) {
    Fatal(worker.world().Barrier());
    if (first) {
      Measure([&] { event_echo->RoundTrip(); }, events);
      Measure([&] { tcp_echo->RoundTrip(); }, connections);
      sent_ns = MonotonicClock().NowNs();
      Fatal(worker.Send(1, "ping", message));
    }
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return batches > batch; });
    }
    Fatal(worker.world().Barrier());
    Measure(
        [&] {
          Fatal(worker.world().SendReceive(array, 0, 1));
          Fatal(worker.world().SendReceive(array, 1, 0));
        },
        transfers);
  }
  for (const char* topic : {"ping", "end of batch"}) Fatal(worker.Receive(topic, nullptr));
  if (!first) return;
  PrintRow("message", messages);
  PrintRow("send-receive", transfers);
  PrintRow("wake-up by an eventfd", events);
  PrintRow("wake-up by TCP", connections);
  const double message_us = Quantile(messages, 0.5);
  std::printf("message / send-receive %.2f, / wake-up by an eventfd %.2f, / wake-up by TCP %.2f\n",
              message_us / Quantile(transfers, 0.5), message_us / Quantile(events, 0.5),
              message_us / Quantile(connections, 0.5));
}

// Answers with what it is asked.
class EchoService : public Service {
 public:
  absl::string_view name() const override { return "echo"; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    return {.answers = {{.to = asked->from, .ticket = asked->ticket, .bytes = asked->request}},
            .reason = ""};
  }
  std::string State() const override { return ""; }
  absl::Status Load(absl::string_view) override { return absl::OkStatus(); }
};

// Something that one thread waits for again and again.
class Signal {
 public:
  void Give() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++given_;
    changed_.notify_all();
  }
  void Take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return given_ > 0; });
    --given_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int given_ = 0;
};

// Only the last rank does something; the threads of all others sleep until it has ended.
void Asking(Worker& worker, int rounds) {
  const int asker = worker.size() - 1;
  const std::string message(kBytes, 'm');
  Signal back, end;
  Fatal(worker.AddService(std::make_unique<EchoService>()));
  Fatal(worker.Receive("ping", [&](Mail mail) {
    if (mail.kind == Mail::Kind::kMessage) Fatal(worker.Send(mail.from, "back", mail.bytes));
  }));
  Fatal(worker.Receive("back", [&](Mail mail) {
    if (mail.kind == Mail::Kind::kMessage) back.Give();
  }));
  Fatal(worker.Receive("end", [&](Mail mail) {
    if (mail.kind == Mail::Kind::kMessage) end.Give();
  }));
  Fatal(worker.world().Barrier());
  if (worker.rank() == asker) {
    std::vector<double> messages, requests;
    for (int batch = 0; batch * kBatch < rounds; ++batch) {
      Measure(
          [&] {
            Fatal(worker.Send(0, "ping", message));
            back.Take();
          },
          messages);
      Measure([&] { Fatal(worker.Ask("echo", message).status()); }, requests);
    }
    // Measure() gives halves.
    for (std::vector<double>* times : {&messages, &requests}) {
      for (double& time : *times) time *= 2;
    }
    PrintRow("message and back", messages);
    PrintRow("request and answer", requests);
    for (int to = 0; to <= asker; ++to) Fatal(worker.Send(to, "end", "x"));
  }
  end.Take();
  for (const char* topic : {"ping", "back", "end"}) Fatal(worker.Receive(topic, nullptr));
}

// Wakes up every millisecond, in a thread of its own, and sends messages to the next worker at this rate.
class Chatter {
 public:
  Chatter(Worker& worker, int per_second) {
    thread_ = std::thread([&, per_second, begin_ns = MonotonicClock().NowNs()] {
      const std::string message(kBytes, 'm');
      while (!stop_) {
        const int64_t passed_ns = MonotonicClock().NowNs() - begin_ns;
        const auto due = static_cast<int64_t>(static_cast<double>(passed_ns) * 1e-9 * per_second);
        while (sent_ < due) {
          Fatal(worker.Send((worker.rank() + 1) % worker.size(), "chatter", message));
          ++sent_;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  int64_t Stop() {
    stop_ = true;
    thread_.join();
    return sent_;
  }

 private:
  std::atomic<bool> stop_{false};
  int64_t sent_ = 0;
  std::thread thread_;
};

// What this process has taken so far.
double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What all-reduces run beside.
enum Beside { kNothing, kThreads, kMessages, kNothingAgain, kBesides };
struct Took {
  double seconds = 0;    // of this worker's
  double processor = 0;  // of all workers
};

void PrintRatios(const char* what, const std::vector<Took>& of, const std::vector<Took>& to) {
  std::vector<double> seconds, processor;
  for (size_t turn = 0; turn < of.size(); ++turn) {
    seconds.push_back(of[turn].seconds / to[turn].seconds);
    processor.push_back(of[turn].processor / to[turn].processor);
  }
  std::printf("%-20s median %.4f  (%.4f to %.4f), processor time %.4f\n", what,
              Quantile(seconds, 0.5), Quantile(seconds, 0.1), Quantile(seconds, 0.9),
              Quantile(processor, 0.5));
}

// Waits until all that the worker before this one has sent has come; a worker knows only what it has sent
// itself. Returns how many all have sent, and how many have come.
std::pair<double, double> AwaitMessages(Worker& worker, int64_t sent,
                                        const std::atomic<int64_t>& came) {
  double total[2] = {0, -1};
  for (int i = 0; i < 6000 && total[1] < total[0]; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    total[0] = static_cast<double>(sent);
    total[1] = static_cast<double>(came);
    Fatal(worker.world().AllReduce(Array::Of(total, 2), ReduceOp::kSum));
  }
  return {total[0], total[1]};
}

void CallsBeside(Worker& worker, uint64_t bytes, int calls, int turns, int per_second) {
  std::atomic<int64_t> came{0};
  Fatal(worker.Receive("chatter", [&](Mail mail) {
    if (mail.kind == Mail::Kind::kMessage) ++came;
  }));
  absl::StatusOr<Buffer> buffer = worker.Allocate(bytes);
  Fatal(buffer.status());
  std::fill_n(buffer->as<float>(), bytes / sizeof(float), 1.0F);
  int64_t sent = 0;
  const auto measure = [&](Beside beside) {
    Fatal(worker.world().Barrier());
    std::unique_ptr<Chatter> chatter;
    if (beside == kThreads || beside == kMessages) {
      chatter = std::make_unique<Chatter>(worker, beside == kMessages ? per_second : 0);
    }
    Took took;
    const double processor = ProcessorSeconds();
    const int64_t begin_ns = MonotonicClock().NowNs();
    for (int i = 0; i < calls; ++i) {
      Fatal(worker.world().AllReduce(Array::Of(buffer->as<float>(), bytes / sizeof(float)),
                                     ReduceOp::kAverage));
    }
    took.seconds = static_cast<double>(MonotonicClock().NowNs() - begin_ns) * 1e-9;
    took.processor = ProcessorSeconds() - processor;
    if (chatter != nullptr) sent += chatter->Stop();
    Fatal(worker.world().AllReduce(Array::Of(&took.processor, 1), ReduceOp::kSum));
    return took;
  };
  // Between hosts the plan is what counts, not the quick choice before it.
  Fatal(worker.world().AwaitPlan(
      {.data = Array::Of(buffer->as<float>(), bytes / sizeof(float)), .op = ReduceOp::kAverage}));
  (void)measure(kNothing);
  std::vector<Took> took[kBesides];
  for (int turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < kBesides; ++i) {
      // Each is first in some turns, and the order is reversed in every other one.
      const int next = ((turn % 2 == 0 ? i : kBesides - 1 - i) + turn / 2) % kBesides;
      took[next].push_back(measure(static_cast<Beside>(next)));
    }
  }
  const auto [all_sent, all_came] = AwaitMessages(worker, sent, came);
  Fatal(worker.Receive("chatter", nullptr));
  if (worker.rank() != 0) return;
  std::printf("all-reduces of %llu bytes beside %d messages a second of each of %d workers\n",
              static_cast<unsigned long long>(bytes), per_second, worker.size());
  PrintRatios("messages / threads", took[kMessages], took[kThreads]);
  PrintRatios("threads / nothing", took[kThreads], took[kNothing]);
  PrintRatios("messages / nothing", took[kMessages], took[kNothing]);
  PrintRatios("nothing (A/A)", took[kNothingAgain], took[kNothing]);
  std::printf("messages: %.0f sent, %.0f came\n", all_sent, all_came);
}

int Main(const std::vector<std::string>& arguments) {
  std::vector<uint64_t> numbers;
  for (size_t i = 1; i < arguments.size(); ++i) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(arguments[i], &number)) numbers.push_back(number);
  }
  const std::string mode = arguments.empty() ? "" : arguments[0];
  const bool latency = mode == "latency" && numbers.size() == 1;
  const bool ask = mode == "ask" && numbers.size() == 1;
  if (!latency && !ask && !(mode == "beside" && numbers.size() == 4)) {
    std::fprintf(stderr,
                 "usage: mail_benchmark latency ROUNDS\n"
                 "       mail_benchmark ask ROUNDS\n"
                 "       mail_benchmark beside BYTES CALLS TURNS MESSAGES_PER_SECOND\n");
    return 2;
  }
  absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Start();
  Fatal(worker.status());
  if (latency) {
    Latency(**worker, static_cast<int>(numbers[0]));
  } else if (ask) {
    Asking(**worker, static_cast<int>(numbers[0]));
  } else {
    CallsBeside(**worker, numbers[0], static_cast<int>(numbers[1]), static_cast<int>(numbers[2]),
                static_cast<int>(numbers[3]));
  }
  Fatal((*worker)->world().Barrier());
  return 0;
}

}  // namespace
}  // namespace syncopate::worker

int main(int argc, char** argv) { return syncopate::worker::Main({argv + 1, argv + argc}); }
