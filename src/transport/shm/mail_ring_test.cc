#include "transport/shm/mail_ring.h"

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "transport/mail.h"

namespace syncopate::transport::shm {
namespace {

TEST(MailRingTest, RecordsOfAllLengthsComeOutAsTheyWentIn) {
  const auto ring = std::make_unique<MailRing>();
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> written;
    for (int i = 0; i < 6; ++i) {
      std::string bytes(1 + random.Below(kMailRecordBytesMax), 'x');
      for (char& byte : bytes) byte = static_cast<char>(random.Next());
      if (!WriteRecord(*ring, bytes.size() + 3, bytes)) break;
      written.push_back(std::move(bytes));
    }
    ASSERT_FALSE(written.empty());
    for (const std::string& bytes : written) {
      const std::optional<MailRecord> record = ReadRecord(*ring);
      ASSERT_TRUE(record.has_value());
      EXPECT_EQ(record->total, bytes.size() + 3);
      ASSERT_TRUE(record->bytes == bytes);
    }
    ASSERT_FALSE(ReadRecord(*ring).has_value());
  }
}

TEST(MailRingTest, AFullRingTakesNothingUntilThereIsRoom) {
  const auto ring = std::make_unique<MailRing>();
  const std::string bytes(kMailRecordBytesMax, 'r');
  int written = 0;
  while (WriteRecord(*ring, bytes.size(), bytes)) ++written;
  EXPECT_EQ(written, static_cast<int>(MailRing::kBytes / (kMailRecordBytesMax + 16)));
  EXPECT_TRUE(ReadRecord(*ring).has_value());
  EXPECT_TRUE(WriteRecord(*ring, bytes.size(), bytes));
  EXPECT_FALSE(WriteRecord(*ring, bytes.size(), bytes));
}

TEST(MailRingTest, TwoThreadsSeeWholeRecordsInOrder) {
  const auto ring = std::make_unique<MailRing>();
  constexpr int kRecords = 20000;
  std::thread writer([&] {
    Random random(2);
    for (int number = 0; number < kRecords; ++number) {
      const std::string bytes(sizeof(int) + random.Below(3000), static_cast<char>(number));
      std::string record = bytes;
      std::memcpy(record.data(), &number, sizeof(number));
      while (!WriteRecord(*ring, record.size(), record)) std::this_thread::yield();
    }
  });
  for (int number = 0; number < kRecords;) {
    const std::optional<MailRecord> record = ReadRecord(*ring);
    if (!record.has_value()) {
      std::this_thread::yield();
      continue;
    }
    int came = -1;
    std::memcpy(&came, record->bytes.data(), sizeof(came));
    EXPECT_EQ(came, number);
    EXPECT_EQ(record->bytes.find_first_not_of(static_cast<char>(number), sizeof(came)),
              std::string::npos);
    ++number;
  }
  writer.join();
}

// Whatever is in the memory, nothing is read beyond the ring or allocated beyond the limits.
TEST(MailRingTest, WhatCannotBeTrueIsNotRead) {
  struct Header {
    uint64_t bytes;
    uint64_t total;
  };
  constexpr uint64_t kMost = MailBytesMax(MailKind::kParcel);
  for (const Header header :
       {Header{0, 10}, Header{~uint64_t{0}, ~uint64_t{0}}, Header{kMailRecordBytesMax + 1, 100000},
        Header{100, 99}, Header{100, kMost + 1}, Header{200, 200}}) {
    const auto ring = std::make_unique<MailRing>();
    ASSERT_TRUE(WriteRecord(*ring, 100, std::string(100, 'r')));
    std::memcpy(ring->bytes, &header, sizeof(header));
    EXPECT_FALSE(ReadRecord(*ring).has_value()) << header.bytes << " " << header.total;
  }
  const auto ring = std::make_unique<MailRing>();
  for (const uint64_t written : {uint64_t{15}, MailRing::kBytes + 1, ~uint64_t{0}}) {
    ring->written.store(written);
    EXPECT_FALSE(ReadRecord(*ring).has_value()) << written;
  }
  Random random(3);
  for (int round = 0; round < 10000; ++round) {
    for (std::byte& byte : ring->bytes) {
      byte = static_cast<std::byte>(random.Below(4) == 0 ? random.Below(256) : 0);
      if (round > 0) break;
    }
    ring->read.store(random.Next());
    ring->written.store(ring->read.load() + random.Below(MailRing::kBytes + 20));
    (void)ReadRecord(*ring);
  }
}

}  // namespace
}  // namespace syncopate::transport::shm
