// The style sheet of the report: light and dark, no fonts or files from elsewhere.
#ifndef SYNCOPATE_OBSERVE_HTML_STYLE_H_
#define SYNCOPATE_OBSERVE_HTML_STYLE_H_

namespace syncopate::observe {

inline constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5a6577;--rule:#dfe3ea;
--accent:#1f5fbf;--compute:#2f6fd0;--forward:#86b4f5;--load:#94a3b8;--pack:#8a63d2;--update:#13897a;--network:#ac6600;
--waiting:#c22f4a;--blocked:#f0b9c2;--other:#b4bcc9;--measuring:#7d7a16;--on:#fff}
@media (prefers-color-scheme:dark){:root{--page:#12161d;--card:#1a2029;--ink:#e6eaf1;--soft:#a0abbd;--rule:#313a48;
--accent:#8ab8ff;--compute:#5b93ec;--forward:#a9cbff;--load:#8291a7;--pack:#b094f0;--update:#43c3b0;--network:#f0a93a;
--waiting:#f0687d;--blocked:#7a3a48;--other:#566274;--measuring:#cfc94a;--on:#0d1117}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main,header{max-width:1160px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 4px}
h2{font-size:1.15rem;margin:0 0 4px}
p{margin:0 0 12px}
.soft{color:var(--soft)}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:18px 20px;margin:18px 0}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px;margin:18px 0;padding:0}
.tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px}
.tiles dt{color:var(--soft);font-size:.82rem}
.tiles dd{margin:2px 0 0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums}
.tiles small{display:block;font-size:.78rem;font-weight:400;color:var(--soft)}
.note{border-left:4px solid var(--network)}
.note ul{margin:0;padding-left:20px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:16px}
figure{margin:0}
figcaption{color:var(--soft);font-size:.88rem;margin-top:4px}
.wide{overflow-x:auto}
.wide svg{min-width:760px}
svg{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
svg .ink{fill:var(--ink)}svg .soft{fill:var(--soft)}svg .on{fill:var(--on)}
svg .grid{stroke:var(--rule)}svg .axis{stroke:var(--soft)}
svg .line{fill:none;stroke-width:2;stroke-linejoin:round}
.c-compute{fill:var(--compute);stroke:var(--compute)}.c-network{fill:var(--network);stroke:var(--network)}
.c-waiting{fill:var(--waiting);stroke:var(--waiting)}.c-update{fill:var(--update);stroke:var(--update)}
.c-pack{fill:var(--pack);stroke:var(--pack)}.c-other{fill:var(--other);stroke:var(--other)}
.c-forward{fill:var(--forward);stroke:var(--forward)}.c-load{fill:var(--load);stroke:var(--load)}
.c-blocked{fill:var(--blocked);stroke:var(--blocked)}.c-measuring{fill:var(--measuring);stroke:var(--measuring)}
svg rect{stroke-width:0}
details{margin-top:10px}
summary{cursor:pointer;color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
table{border-collapse:collapse;margin:10px 0;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding-bottom:4px}
th,td{padding:4px 9px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th{font-weight:600}
th:first-child,td:first-child,.text{text-align:left}
.left th,.left td{text-align:left}
td:first-child,.left td:last-child{white-space:normal;overflow-wrap:anywhere}
.strong{font-size:1.05rem}
footer{max-width:1160px;margin:0 auto;padding:0 20px 28px;color:var(--soft);font-size:.85rem}
pre{overflow-x:auto;font-size:.82rem;background:var(--page);padding:12px;border-radius:8px}
@media (max-width:760px){.tiles{grid-template-columns:repeat(2,1fr)}}
@media print{body{background:#fff}section{break-inside:avoid}}
)css";

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_HTML_STYLE_H_
