#include "control/launcher_notes.h"

#include <map>
#include <string>

#include "base/environment.h"
#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

// The environment that the launcher gives to its workers, and nothing else.
Environment Of(const LauncherNotes& notes) {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : notes.Variables()) {
    const size_t equals = variable.find('=');
    variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return MapEnvironment(variables);
}

TEST(LauncherNotesTest, TellWhoWasEndedByWhom) {
  LauncherNotes notes;
  EXPECT_EQ(notes.WhyEnded(4711), "");
  NoteEnding(Of(notes), 4711, 3, "no heartbeat");
  NoteEnding(Of(notes), 4711, 1, "no heartbeat");  // it found out later
  NoteEnding(Of(notes), 4712, 1, "it did not\nfinish");
  EXPECT_EQ(notes.WhyEnded(4711), "was stuck (no heartbeat) and was ended by rank 3");
  EXPECT_EQ(notes.WhyEnded(4712), "was stuck (it did not?finish) and was ended by rank 1");
  EXPECT_EQ(notes.WhyEnded(4713), "");
}

TEST(LauncherNotesTest, TwoLaunchersHaveTheirOwn) {
  LauncherNotes one, other;
  NoteEnding(Of(one), 1, 0, "no heartbeat");
  EXPECT_EQ(other.WhyEnded(1), "");
  EXPECT_NE(one.WhyEnded(1), "");
}

TEST(LauncherNotesTest, AWorkerWithoutALauncherTellsNobody) {
  for (const char* value : {"", "no hex", "abc", "00"}) {
    NoteEnding(MapEnvironment({{"SYNCOPATE_LAUNCHER", value}}), 1, 0, "no heartbeat");
  }
  NoteEnding(MapEnvironment({}), 1, 0, "no heartbeat");
}

}  // namespace
}  // namespace syncopate::control
