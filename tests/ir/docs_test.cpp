#include "ir/ops/docs.h"
#include "ir/ops/op_def.h"
#include "gtest/gtest.h"

using namespace fusor::ir;

namespace {

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(OpsMarkdown, HasARowForEveryOpAndEveryAttribute) {
  std::string page = opsMarkdown();
  for (const OpDef *def : allOps()) {
    EXPECT_TRUE(contains(page, "| `" + def->name + "` |")) << def->name;
    for (const AttrSpec &spec : def->attrs) {
      EXPECT_FALSE(spec.summary.empty()) << def->name << " " << spec.name << ": add .note()";
      EXPECT_TRUE(contains(page, "| `" + def->name + "` | `" + spec.name + "` |")) << def->name << " " << spec.name;
    }
  }
}

TEST(OpsMarkdown, SaysHowAnOpIsDefinedAndWhatItsAttributesTake) {
  std::string page = opsMarkdown();
  EXPECT_TRUE(contains(page, "| `silu` | x (floats) | y | x * sigmoid(x) | formula, gradient | pointwise |"));
  EXPECT_TRUE(contains(page, "| `attention` | q, k, v, key_mask?, kv_length?, bias? | y, lse |"));
  EXPECT_TRUE(contains(page, "| expansion, primitive, gradient | attention |"));
  EXPECT_TRUE(contains(page, "| `dropout` | `rate` | real in 0.0..1.0 | 0.1 |"));
  EXPECT_TRUE(contains(page, "| `gelu` | `form` | tanh or erf or quick | tanh |"));
  EXPECT_TRUE(contains(page, "| `cast` | `to` | dtype | required |"));
  EXPECT_TRUE(contains(page, "| `concat` | x, parts... |"));
  EXPECT_TRUE(contains(page, "\\|x\\|")) << "a bar in a summary must not end its cell";
}

TEST(OpsText, HasOneLineForEveryOp) {
  std::string text = opsText();
  for (const OpDef *def : allOps()) EXPECT_TRUE(contains(text, "  " + def->name + " ")) << def->name;
  EXPECT_TRUE(contains(text, "gelu x {form = tanh}"));
  EXPECT_TRUE(contains(text, "softmax x {axis = -1, out?}"));
}

} // namespace
