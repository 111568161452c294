// JSON made small, for a page that carries the IR of twelve equal layers. page/data.js is the reverse.
//
//   a list of 3 or more objects   {"#": [keys], "=": [[values of one object in the order of the keys], ...]}
//                                 null: it lacks the key; the nulls at the end are left out
//   a column of texts, few of     {"#": ..., "=": ..., "~": {key: [the texts]}}, in the rows their places
//   them different
//   a text of 16 or more bytes    {"$": n}              the n-th template
//                                 {"$": [n, 3, 0]}      with these numbers in the template's holes, in order
//   a template                    a text in which U+0001 stands for each number behind '.', '%', or '_'
//   a number that is no integer   rounded to 5 significant digits
//
// The data must hold no null, no key "$", "#" and no U+0001: others are kept as they are where that is safe, and
// U+0001 becomes a blank.
#pragma once
#include "llvm/Support/JSON.h"
#include <string>

namespace fusor::frontend {

/// {"templates": [...], "data": ...} as text. `<` is written \u003c: it can stand in a script element of HTML.
std::string compactJson(const llvm::json::Value &data);

} // namespace fusor::frontend
