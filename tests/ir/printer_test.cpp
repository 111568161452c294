// How graphs are printed, and copied.
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "ir/graph/printer.h"
#include "gtest/gtest.h"

using namespace fusor::ir;

TEST(Printer, NamesAreMadeUnique) {
  Module module;
  Function &f = module.addFunction("f");
  Value x = f.block().addArgument({DType::f32, {Dim(4)}}, "x");
  Builder b(f.block());
  Value h = b.op("neg", {x}), h2 = b.op("neg", {h}), h3 = b.op("neg", {h2}), unnamed = b.op("neg", {h3});
  h.setName("x");
  h2.setName("x");
  h3.setName("x.1");
  f.setReturns({{ReturnKind::result, "", unnamed}});
  EXPECT_EQ(printFunction(f), "func @f(%x: f32[4]) -> f32[4] {\n"
                              "  %x.1 = neg %x     : f32[4]\n"
                              "  %x.2 = neg %x.1   : f32[4]\n"
                              "  %x.1.1 = neg %x.2 : f32[4]\n"
                              "  %0 = neg %x.1.1   : f32[4]\n"
                              "  return %0\n"
                              "}\n");
}
