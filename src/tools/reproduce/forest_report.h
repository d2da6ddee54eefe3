// The reproduced figures as tables for people, as JSON and as a picture.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_FOREST_REPORT_H_
#define SYNCOPATE_TOOLS_REPRODUCE_FOREST_REPORT_H_

#include <string>
#include <vector>

#include "tools/reproduce/forest_figures.h"

namespace syncopate::tools::reproduce {

std::string FiguresToText(const std::vector<Figure>& figures, const FigureOptions& options);
std::string FiguresToJson(const std::vector<Figure>& figures, const FigureOptions& options);
std::string FiguresToSvg(const std::vector<Figure>& figures);

}  // namespace syncopate::tools::reproduce

#endif  // SYNCOPATE_TOOLS_REPRODUCE_FOREST_REPORT_H_
