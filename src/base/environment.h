// The seam for environment variables: code that needs them takes an Environment, tests pass a map.
#ifndef SYNCOPATE_BASE_ENVIRONMENT_H_
#define SYNCOPATE_BASE_ENVIRONMENT_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace syncopate {

// Looks a variable up; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment ProcessEnvironment();
Environment MapEnvironment(std::map<std::string, std::string> variables);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_ENVIRONMENT_H_
