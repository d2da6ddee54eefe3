#include "transport/shm/arena.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace syncopate::transport {
namespace {

Arena MakeArena(size_t bytes) { return Arena(*MemoryFile::Create("arena-test", bytes)); }

TEST(ArenaTest, BlocksAreAlignedDisjointAndComeBack) {
  Arena arena = MakeArena(8 << 20);
  Random random(1);
  std::map<std::byte*, size_t> blocks;
  for (int i = 0; i < 20000; ++i) {
    if (blocks.size() < 20 && random.Below(2) == 0) {
      const size_t bytes = random.Below(random.Below(10) == 0 ? 200000 : 5000);
      absl::StatusOr<std::byte*> block = arena.Allocate(bytes);
      ASSERT_TRUE(block.ok()) << block.status();
      ASSERT_EQ(reinterpret_cast<uintptr_t>(*block) % Arena::kAlignment, 0u);
      ASSERT_TRUE(arena.Owns(*block, bytes));
      const auto after = blocks.lower_bound(*block);
      if (after != blocks.end()) {
        ASSERT_LE(*block + bytes, after->first);
      }
      if (after != blocks.begin()) {
        ASSERT_LE(std::prev(after)->first + std::prev(after)->second, *block);
      }
      std::memset(*block, 1, bytes);
      blocks[*block] = std::max<size_t>(bytes, 1);
    } else if (!blocks.empty()) {
      auto victim = std::next(blocks.begin(), static_cast<long>(random.Below(blocks.size())));
      arena.Free(victim->first);
      blocks.erase(victim);
    }
  }
  for (const auto& [block, bytes] : blocks) arena.Free(block);
  // Large runs have merged again: nearly all of the arena fits in one block.
  EXPECT_TRUE(arena.Allocate(5 << 20).ok());
}

// Blocks of a size took turns, so that workers that read them mapped all that were ever in use at once.
TEST(ArenaTest, TheLowestFreeBlockIsTheNext) {
  Arena arena = MakeArena(1 << 20);
  for (const size_t bytes : {size_t{4096}, size_t{16384}}) {
    std::vector<std::byte*> blocks;
    for (int i = 0; i < 6; ++i) blocks.push_back(*arena.Allocate(bytes));
    ASSERT_TRUE(std::is_sorted(blocks.begin(), blocks.end()));
    for (const size_t freed : {1, 4, 2}) arena.Free(blocks[freed]);
    for (const size_t next : {1, 2, 4}) EXPECT_EQ(*arena.Allocate(bytes), blocks[next]);
  }
}

TEST(ArenaTest, SaysWhenItIsFull) {
  Arena arena = MakeArena(1 << 20);
  EXPECT_EQ(arena.Allocate((1 << 20) + 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(arena.Allocate(~size_t{0}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(arena.Allocate(1 << 20).ok());
  EXPECT_EQ(arena.Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
}

// How much memory the system has given for the arena.
uint64_t TakenAt(const Arena& arena) {
  struct stat status = {};
  EXPECT_EQ(fstat(arena.memory().fd(), &status), 0);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

TEST(ArenaTest, PagesOfALargeBlockAreTakenInPieces) {
  Arena arena = MakeArena(64 << 20);
  std::byte* const below = *arena.Allocate(3 << 20);
  const uint64_t before = TakenAt(arena);
  EXPECT_EQ(before, uint64_t{3} << 20);
  constexpr size_t kBytes = 10 << 20;
  int pieces = 1;
  for (; !arena.Populate(kBytes) && pieces < 100; ++pieces) {
    EXPECT_EQ(TakenAt(arena), before + static_cast<uint64_t>(pieces) * Arena::kPieceBytes);
  }
  EXPECT_EQ(pieces, 10);
  EXPECT_EQ(TakenAt(arena), before + kBytes);
  ASSERT_TRUE(arena.Allocate(kBytes).ok());
  EXPECT_EQ(TakenAt(arena), before + kBytes) << "nothing is left to take";
  // What was taken once serves again, and what cannot be is left to Allocate().
  arena.Free(below);
  EXPECT_TRUE(arena.Populate(3 << 20));
  EXPECT_TRUE(arena.Populate(64 << 20));
  EXPECT_TRUE(arena.Populate(~size_t{0}));
  EXPECT_EQ(TakenAt(arena), before + kBytes);
}

TEST(ArenaTest, KnowsItsOwnMemory) {
  Arena arena = MakeArena(1 << 20);
  std::byte outside;
  std::byte* inside = *arena.Allocate(100);
  EXPECT_FALSE(arena.Owns(&outside, 1));
  EXPECT_TRUE(arena.Owns(inside, 100));
  EXPECT_FALSE(arena.Owns(inside, 2 << 20));
}

TEST(MemoryFileTest, RefusesWhatIsNotSealedOrHasAnotherSize) {
  MemoryFile file = *MemoryFile::Create("test", 8192);
  EXPECT_TRUE(MemoryFile::Open(UniqueFd(dup(file.fd())), 8192).ok());
  EXPECT_FALSE(MemoryFile::Open(UniqueFd(dup(file.fd())), 4096).ok());
  FILE* plain = tmpfile();
  ASSERT_EQ(ftruncate(fileno(plain), 8192), 0);
  EXPECT_FALSE(MemoryFile::Open(UniqueFd(dup(fileno(plain))), 8192).ok());
  fclose(plain);
}

}  // namespace
}  // namespace syncopate::transport
