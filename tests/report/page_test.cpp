// The page as text: small JSON that comes back as it was, and nothing from a dump that could be markup.
#include "frontend/report/compact.h"
#include "frontend/report/join.h"
#include "frontend/report/page.h"
#include "tests/report/small_dump.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace fusor::frontend {
namespace {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// page/data.js's revive(), again.
Value revived(const Value &packed, const Array &templates) {
  auto fill = [&](size_t index, llvm::ArrayRef<Value> numbers) {
    std::string text;
    size_t next = 0;
    const std::string shape = templates[index].getAsString()->str();
    for (char c : shape)
      if (c == '\x01')
        text += std::to_string(*numbers[next++].getAsInteger());
      else
        text += c;
    return text;
  };
  if (const Array *list = packed.getAsArray()) {
    Array result;
    for (const Value &value : *list) result.push_back(revived(value, templates));
    return result;
  }
  const Object *object = packed.getAsObject();
  if (!object) return packed;
  if (const Value *text = object->get("$")) {
    if (auto index = text->getAsInteger()) return fill(*index, {});
    const Array &parts = *text->getAsArray();
    return fill(*parts[0].getAsInteger(), std::vector<Value>(parts.begin() + 1, parts.end()));
  }
  if (const Array *keys = object->getArray("#")) {
    Array rows;
    for (const Value &row : *object->getArray("=")) {
      Object entry;
      for (size_t i = 0; i < row.getAsArray()->size(); ++i)
        if (const Value &cell = (*row.getAsArray())[i]; cell.kind() != Value::Null) {
          llvm::StringRef key = *(*keys)[i].getAsString();
          const Array *words = object->getObject("~")->getArray(key);
          entry[key.str()] = revived(words ? (*words)[*cell.getAsInteger()] : cell, templates);
        }
      rows.push_back(std::move(entry));
    }
    return rows;
  }
  Object result;
  for (const auto &[key, value] : *object)
    result[key.str()] = revived(value, templates); // as a StringRef it would be one into what is parsed
  return result;
}
Value thereAndBack(const Value &data) {
  Value packed = llvm::cantFail(llvm::json::parse(compactJson(data)));
  return revived(*packed.getAsObject()->get("data"), *packed.getAsObject()->getArray("templates"));
}

TEST(ReportCompact, ComesBackAsItWas) {
  Array rows;
  for (int i = 0; i < 5; ++i) {
    Object row{
        {"text", llvm::formatv("%blocks.{0}.fc1 = linear %blocks.{0}.ln, @w.{1} : f32[{0}, 007]", i, i * 1000).str()},
        {"index", i},
        {"kind", i < 3 ? "taken" : "a refused one, with its long reason"}};
    if (i % 2) row["sometimes"] = 0.25;
    rows.push_back(std::move(row));
  }
  Value data =
      Object{{"rows", std::move(rows)},
             {"few", Array{1, "x", true, 1.5, -3}},
             {"texts", Array{"", "0.02", "a.0012345678 and %00 and _1 and .", "%1.%2.%3_4 a long one", "\"\\\n\t"}},
             {"empty", Object{}},
             {"large", int64_t(1) << 62}};
  EXPECT_EQ(thereAndBack(data), data);
}

TEST(ReportCompact, EqualLayersCostOneTemplate) {
  Array one, twelve;
  for (int i = 0; i < 12; ++i) {
    std::string text;
    for (int line = 0; line < 30; ++line)
      text += llvm::formatv("  %{1} = mul %blocks.{0}.scale, %{1}\n", i, line).str();
    if (i == 0) one.push_back(text);
    twelve.push_back(text);
  }
  size_t single = compactJson(Value(std::move(one))).size(), all = compactJson(Value(std::move(twelve))).size();
  EXPECT_LT(all, 5 * single) << single;
}

TEST(ReportCompact, BytesThatAreNoText) {
  std::string json = compactJson(Value(Object{{"a", llvm::json::fixUTF8("\xff\xfe broken, and \x01 in a long text")}}));
  EXPECT_TRUE(bool(llvm::json::parse(json))) << json;
}

/// What is in the page beyond the template and the files of frontend/report/page.
TEST(ReportPage, HostileNamesStayText) {
  const std::string evil = "</script><img src=x onerror=alert(1)><!--<script>";
  tests::SmallDump dump;
  std::string quoted = llvm::formatv("{0}", Value(evil)).str();
  dump.folder.write("steps.json", "[{\"name\": " + quoted + ", \"ir\": " + quoted + ", \"layer\": " + quoted +
                                      ", \"locations\": [" + quoted + "], \"ms\": 1}]");
  dump.folder.write("fusions.json",
                    "[{\"kind\": " + quoted + ", \"rule\": " + quoted + ", \"reason\": " + quoted + "}]");
  dump.folder.write("fp8_stats.json", "{" + quoted + ": {\"clipped\": 1}}");
  dump.folder.write("kernels/linear_gelu__f32/kernel.cu", "// " + evil);
  dump.folder.write("modules/02_fusion.fir", "func @forward(%x: f32[4]) -> f32[4] {\n  %\"" + evil +
                                                 "\" = gelu %x : f32[4]\n  return %\"" + evil + "\"\n}\n");
  auto folder = llvm::cantFail(readDump(dump.path()));
  std::string html = pageHtml(Value(llvm::cantFail(pageData(folder))));
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_NE(html.find("\\u003c/script>\\u003cimg src=x onerror"), std::string::npos);
  // As many scripts as the template has, and no other end of one.
  llvm::StringRef page(html);
  EXPECT_EQ(page.count("</script"), pageFile("report.html").count("</script"));
  EXPECT_EQ(page.count("<script"), pageFile("report.html").count("<script"));
}

TEST(ReportPage, HoldsEverythingAndFetchesNothing) {
  std::string html = pageHtml(Value(Object{}));
  llvm::StringRef page(html);
  for (const char *part :
       {"function revive(packed)", "function graphView(", "--k-contraction:", "id=\"panel\"", "page();"})
    EXPECT_TRUE(page.contains(part)) << part;
  for (const char *outside : {"src=\"", "href=\"report", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML",
                              "insertAdjacentHTML", "document.write", "eval("})
    EXPECT_FALSE(page.contains(outside)) << outside;
  EXPECT_TRUE(page.contains("default-src 'none'"));
}

} // namespace
} // namespace fusor::frontend
