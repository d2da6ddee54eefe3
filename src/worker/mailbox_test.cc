// Mail between workers through the public interface, in shared memory: threads of this process.
#include "worker/mailbox.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/syncopate.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the handler of a topic got, for a thread that waits for it.
class Inbox {
 public:
  Inbox(Worker& worker, const std::string& topic) : worker_(worker), topic_(topic) {
    const auto keep = [this](Mail mail) {
      std::lock_guard<std::mutex> lock(mutex_);
      mail_.push_back(std::move(mail));
      changed_.notify_all();
    };
    EXPECT_TRUE(worker_.Receive(topic_, keep).ok());
  }
  ~Inbox() { EXPECT_TRUE(worker_.Receive(topic_, nullptr).ok()); }
  // The first `count`; fewer if they do not come in a minute.
  std::vector<Mail> WaitFor(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return mail_.size() >= count; });
    return mail_;
  }

 private:
  Worker& worker_;
  const std::string topic_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Mail> mail_;
};

TEST(MailboxTest, MessagesComeToTheHandlersOfTheirTopicInOrder) {
  RunWorkers(3, [](Worker& worker) {
    Inbox odd(worker, "odd"), even(worker, "even");
    constexpr int kMessages = 200;
    for (int i = 0; i < kMessages; ++i) {
      for (int to = 0; to < worker.size(); ++to) {
        ASSERT_TRUE(worker.Send(to, i % 2 == 0 ? "even" : "odd", std::to_string(i)).ok());
      }
    }
    int first = 0;
    for (Inbox* inbox : {&even, &odd}) {
      const std::vector<Mail> all = inbox->WaitFor(3 * kMessages / 2);
      ASSERT_EQ(all.size(), 3u * kMessages / 2);
      std::vector<int> next(3, first);
      for (const Mail& mail : all) {
        EXPECT_EQ(mail.kind, Mail::Kind::kMessage);
        EXPECT_EQ(mail.bytes, std::to_string(next[static_cast<size_t>(mail.from)]));
        next[static_cast<size_t>(mail.from)] += 2;
      }
      ++first;
    }
    ASSERT_TRUE(worker.world().Barrier().ok());  // nobody leaves before all have theirs
  });
}

// A worker that waits in a collective, or computes, still answers.
TEST(MailboxTest, HandlersRunWhateverTheOtherThreadsDo) {
  RunWorkers(2, [](Worker& worker) {
    if (worker.rank() == 1) {
      ASSERT_TRUE(worker
                      .Receive("question",
                               [&](Mail mail) {
                                 if (mail.kind != Mail::Kind::kMessage) return;
                                 EXPECT_TRUE(worker.Send(mail.from, "answer", mail.bytes).ok());
                               })
                      .ok());
    } else {
      Inbox answers(worker, "answer");
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(worker.Send(1, "question", std::to_string(i)).ok());
        const std::vector<Mail> mail = answers.WaitFor(static_cast<size_t>(i) + 1);
        ASSERT_EQ(mail.size(), static_cast<size_t>(i) + 1);
        EXPECT_EQ(mail.back().bytes, std::to_string(i));
      }
    }
    // Worker 1 has been here from the start.
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(MailboxTest, ParcelsOfAnySizeComeWhole) {
  RunWorkers(2, [](Worker& worker) {
    Inbox inbox(worker, "plans");
    const std::vector<size_t> sizes = {0, 1, 100'000, 5 << 20};
    const auto bytes = [&](int rank, size_t size) {
      return std::string(size, static_cast<char>('a' + rank));
    };
    for (const size_t size : sizes) {
      ASSERT_TRUE(worker.SendParcel(1 - worker.rank(), "plans", bytes(worker.rank(), size)).ok());
    }
    const std::vector<Mail> mail = inbox.WaitFor(sizes.size());
    ASSERT_EQ(mail.size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(mail[i].kind, Mail::Kind::kParcel);
      EXPECT_TRUE(mail[i].bytes == bytes(1 - worker.rank(), sizes[i])) << i;
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

// Workers do not come to their Receive() at the same time.
TEST(MailboxTest, WhatComesBeforeItsHandlerIsKept) {
  RunWorkers(2, [](Worker& worker) {
    Inbox other(worker, "other");
    ASSERT_TRUE(worker.Send(1 - worker.rank(), "late", "first").ok());
    ASSERT_TRUE(worker.Send(1 - worker.rank(), "late", "second").ok());
    ASSERT_TRUE(worker.Send(1 - worker.rank(), "other", "third").ok());
    ASSERT_EQ(other.WaitFor(1).size(), 1u);
    Inbox late(worker, "late");
    const std::vector<Mail> mail = late.WaitFor(2);
    ASSERT_EQ(mail.size(), 2u);
    EXPECT_EQ(mail[0].bytes, "first");
    EXPECT_EQ(mail[1].bytes, "second");
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(MailboxTest, EveryHandlerHearsOnceThatAWorkerLeft) {
  RunWorkers(3, [](Worker& worker) {
    Inbox before(worker, "before");
    if (worker.rank() == 2) {
      for (int to : {0, 1}) ASSERT_TRUE(worker.Send(to, "before", "goodbye").ok());
      ASSERT_TRUE(worker.Send(0, "after", "goodbye").ok());
      return;  // it leaves
    }
    const auto kinds = [](const std::vector<Mail>& all) {
      std::vector<Mail::Kind> of_two;
      for (const Mail& mail : all) {
        if (mail.from == 2) of_two.push_back(mail.kind);
      }
      return of_two;
    };
    EXPECT_THAT(kinds(before.WaitFor(2)), ElementsAre(Mail::Kind::kMessage, Mail::Kind::kLeft));
    EXPECT_EQ(worker.Send(2, "before", "hello").code(), absl::StatusCode::kUnavailable);
    Inbox after(worker, "after");
    if (worker.rank() == 0) {
      EXPECT_THAT(kinds(after.WaitFor(2)), ElementsAre(Mail::Kind::kMessage, Mail::Kind::kLeft));
    } else {
      EXPECT_THAT(kinds(after.WaitFor(1)), ElementsAre(Mail::Kind::kLeft));
    }
    const absl::StatusOr<Group> rest = worker.NewGroup({0, 1});
    ASSERT_TRUE(rest.ok());
    ASSERT_TRUE(Group(*rest).Barrier().ok());
  });
}

TEST(MailboxTest, AReplacedHandlerDoesNotRunAnyMore) {
  RunWorkers(1, [](Worker& worker) {
    for (int round = 0; round < 200; ++round) {
      auto alive = std::make_unique<std::atomic<int>>(0);
      ASSERT_TRUE(worker.Receive("topic", [count = alive.get()](Mail) { ++*count; }).ok());
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.Send(0, "topic", "x").ok());
      ASSERT_TRUE(worker.Receive("topic", nullptr).ok());
      alive.reset();  // the address sanitizer finds a handler that still runs
    }
    // What was not handed out is kept, and comes to the next one.
    Inbox rest(worker, "topic");
    ASSERT_TRUE(worker.Send(0, "topic", "last").ok());
    for (size_t count = 1;; ++count) {
      const std::vector<Mail> mail = rest.WaitFor(count);
      ASSERT_GE(mail.size(), count);
      if (mail.back().bytes == "last") break;
    }
  });
}

TEST(MailboxTest, WhatIsNotAllowedIsRefusedWithAReason) {
  RunWorkers(1, [](Worker& worker) {
    const auto expect_refused = [](const absl::Status& status, const std::string& why) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    };
    expect_refused(worker.Send(0, "", "x"), "a topic of 0 bytes");
    expect_refused(worker.Send(0, std::string(limits::kMailTopicBytesMax + 1, 't'), "x"),
                   "a topic of 65 bytes");
    expect_refused(worker.Send(0, "t", std::string(limits::kMailBytesMax + 1, 'x')), "4097 bytes");
    expect_refused(worker.SendParcel(0, "t", std::string(limits::kParcelBytesMax + 1, 'x')),
                   "it may have 67108864");
    expect_refused(worker.Send(1, "t", "x"), "not a rank of a job of 1");
    expect_refused(worker.Send(0, "syncopate/agreement", "x"), "the library's own");
    expect_refused(worker.Receive("syncopate/agreement", [](Mail) {}), "the library's own");
    EXPECT_TRUE(worker
                    .Send(0, std::string(limits::kMailTopicBytesMax, 't'),
                          std::string(limits::kMailBytesMax, 'x'))
                    .ok());
  });
}

// Departures come in one order at all workers, with their places in it.
TEST(MailboxTest, DeparturesHaveAnOrder) {
  std::mutex mutex;
  std::vector<std::vector<std::pair<int, uint64_t>>> heard;
  RunWorkers(4, [&](Worker& worker) {
    Inbox inbox(worker, "x");
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() >= 2) return;  // it leaves
    std::vector<Mail> all = inbox.WaitFor(2);
    ASSERT_GE(all.size(), 2u);  // the other one may have gone as well
    all.resize(2);
    std::vector<std::pair<int, uint64_t>> mine;
    for (const Mail& mail : all) {
      EXPECT_EQ(mail.kind, Mail::Kind::kLeft);
      mine.emplace_back(mail.from, mail.order);
    }
    std::lock_guard<std::mutex> lock(mutex);
    heard.push_back(mine);
  });
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0][0].second, 1u);
  EXPECT_EQ(heard[0][1].second, 2u);
  EXPECT_EQ(heard[0], heard[1]);
}

TEST(MailboxTest, TasksRunInOrderAndAtTheirTimesOnTheControlThread) {
  RunWorkers(1, [](Worker& worker) {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<int> order;
    std::set<std::thread::id> threads;
    const int64_t begin_ns = MonotonicClock().NowNs();
    int64_t last_ns = 0;
    const auto note = [&](int number) {
      std::lock_guard<std::mutex> lock(mutex);
      order.push_back(number);
      threads.insert(std::this_thread::get_id());
      last_ns = MonotonicClock().NowNs();
      changed.notify_all();
    };
    Mailbox& mailbox = MailboxOf(worker);
    mailbox.DoAt(begin_ns + 60'000'000, [&] { note(4); });
    mailbox.DoAt(begin_ns + 30'000'000, [&] { note(3); });
    mailbox.Do([&] { note(1); });
    mailbox.Do([&] { note(2); });
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::minutes(1), [&] { return order.size() == 4; }));
    EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
    EXPECT_GE(last_ns - begin_ns, 60'000'000);
    EXPECT_EQ(threads.size(), 1u);
    EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  });
}

}  // namespace
}  // namespace syncopate::worker
