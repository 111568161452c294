// Einsum against loops over all labels, in every spelling that the importer treats apart.
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_folder.h"
#include "gtest/gtest.h"
#include <map>

namespace fusor::tests {
namespace {

struct Case {
  const char *equation, *plain; // as the node has it; with every dim as a letter and the result given
  std::vector<std::vector<int64_t>> shapes;
};

// Sums over every assignment of the labels.
Numbers byLoops(llvm::StringRef plain, llvm::ArrayRef<ir::RefTensor> inputs) {
  auto [left, result] = plain.split("->");
  llvm::SmallVector<llvm::StringRef, 3> terms;
  left.split(terms, ',');
  std::map<char, int64_t> size, at;
  for (unsigned t = 0; t < terms.size(); ++t)
    for (unsigned d = 0; d < terms[t].size(); ++d) size[terms[t][d]] = std::max(size[terms[t][d]], inputs[t].shape[d]);
  auto place = [&](llvm::StringRef term, llvm::ArrayRef<int64_t> shape) {
    int64_t i = 0;
    for (unsigned d = 0; d < term.size(); ++d) i = i * shape[d] + (shape[d] == 1 ? 0 : at[term[d]]);
    return i;
  };
  llvm::SmallVector<int64_t, 4> shape;
  int64_t elements = 1, all = 1;
  for (char c : result) shape.push_back(size[c]), elements *= size[c];
  for (auto [label, n] : size) all *= n;
  Numbers sums(elements, 0);
  for (int64_t i = 0; i < all; ++i) {
    int64_t rest = i;
    for (auto [label, n] : size) at[label] = rest % n, rest /= n;
    double product = 1;
    for (unsigned t = 0; t < terms.size(); ++t) product *= inputs[t].data[place(terms[t], inputs[t].shape)];
    sums[place(result, shape)] += product;
  }
  return sums;
}

ModelBuilder einsum(llvm::StringRef equation, llvm::ArrayRef<std::vector<std::string>> shapes, int32_t type = 1) {
  ModelBuilder m;
  std::vector<std::string> names;
  for (const std::vector<std::string> &shape : shapes) {
    names.push_back("x" + std::to_string(names.size()));
    m.input(names.back(), shape, type);
  }
  m.output("y", type);
  ModelBuilder::textAttribute(m.node("Einsum", names, {"y"}), "equation", equation);
  return m;
}

TEST(OnnxEinsum, AgainstLoopsOverTheLabels) {
  const Case cases[] = {
      {"ij,jk->ik", "ij,jk->ik", {{2, 3}, {3, 4}}},
      {"ij,jk", "ij,jk->ik", {{2, 3}, {3, 4}}},
      {" j i , k j -> k i ", "ji,kj->ki", {{3, 2}, {4, 3}}},
      {"ba", "ba->ab", {{2, 3}}},
      {"bA", "bA->Ab", {{2, 3}}}, // capitals come first
      {"ij->", "ij->", {{2, 3}}},
      {"ij,ij->", "ij,ij->", {{2, 3}, {2, 3}}},
      {"i,j->ij", "i,j->ij", {{2}, {3}}},
      {"ij,ij->ij", "ij,ij->ij", {{2, 3}, {2, 3}}},
      {"ij,kl->i", "ij,kl->i", {{2, 3}, {4, 2}}},
      {"ii->i", "ii->i", {{3, 3}}},
      {"ii", "ii->", {{3, 3}}},
      {"ijij->ji", "ijij->ji", {{2, 3, 2, 3}}},
      {"iii->i", "iii->i", {{3, 3, 3}}},
      {"abc,cde->abde", "abc,cde->abde", {{2, 3, 4}, {4, 2, 3}}},
      {"aecd,abcd->acbe", "aecd,abcd->acbe", {{2, 5, 3, 4}, {2, 6, 3, 4}}},
      {"acbe,aecd->abcd", "acbe,aecd->abcd", {{2, 3, 6, 5}, {2, 5, 3, 4}}},
      {"bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
      {"abcd,cdef->abef", "abcd,cdef->abef", {{2, 2, 3, 4}, {3, 4, 2, 3}}},
      {"dcab,efdc->abef", "dcab,efdc->abef", {{3, 4, 2, 2}, {2, 3, 3, 4}}},
      {"...ij,...jk->...ik", "abij,abjk->abik", {{2, 3, 2, 3}, {2, 3, 3, 4}}},
      {"...ij,...jk->...ik", "abij,abjk->abik", {{2, 1, 2, 3}, {1, 3, 3, 4}}},
      {"...ij,jk", "abij,jk->abik", {{2, 3, 2, 3}, {3, 4}}},
      {"i...->...", "iab->ab", {{2, 3, 4}}},
      {"...,...", "ab,ab->ab", {{2, 1}, {2, 3}}},
      {"...i->...", "i->", {{3}}},
      {"ij,jk,kl->il", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
      {"ij,j,ik->k", "ij,j,ik->k", {{2, 3}, {3}, {2, 4}}},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.equation);
    for (auto [dtype, type] : {std::pair(ir::DType::f32, 1), {ir::DType::i32, 6}}) {
      std::vector<std::vector<std::string>> dims;
      std::vector<ir::RefTensor> inputs;
      for (const std::vector<int64_t> &shape : c.shapes) {
        dims.emplace_back();
        for (int64_t dim : shape) dims.back().push_back(std::to_string(dim));
        inputs.push_back(randomTensor(dtype, shape, 7 + inputs.size(), 9));
      }
      Numbers found = resultsOf(einsum(c.equation, dims, type), inputs)[0].data, wanted = byLoops(c.plain, inputs);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-9) << "element " << i;
    }
  }
}

TEST(OnnxEinsum, SymbolsAreSizesToo) {
  ModelBuilder m = einsum("bqhd,bkhd->bhqk", {{"B", "Q", "2", "3"}, {"B", "K", "2", "3"}});
  std::vector<ir::RefTensor> inputs = {randomTensor(ir::DType::f32, {2, 4, 2, 3}, 1),
                                       randomTensor(ir::DType::f32, {2, 5, 2, 3}, 2)};
  Numbers found = resultsOf(m, inputs)[0].data, wanted = byLoops("bqhd,bkhd->bhqk", inputs);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-9) << "element " << i;
}

// As Keras writes it: the keys are the first operand.
TEST(OnnxEinsum, AttentionOfEinsumsIsLifted) {
  ModelBuilder m;
  for (const char *name : {"q", "k", "v"}) m.input(name, {"B", name[0] == 'q' ? "S" : "T", "2", "8"});
  m.output("y");
  ModelBuilder::textAttribute(m.node("Einsum", {"k", "q"}, {"scores"}), "equation", "aecd,abcd->acbe");
  m.node("Softmax", {"scores"}, {"p"});
  ModelBuilder::textAttribute(m.node("Einsum", {"p", "v"}, {"y"}), "equation", "acbe,aecd->abcd");
  auto imported = onnx::importBytes(m.bytes(), "m.onnx", "");
  ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
  auto ops = liftedOps(*imported->module);
  EXPECT_EQ(ops["attention"], 1u) << imported->module->str();
  EXPECT_EQ(ops["matmul"], 0u);
}

TEST(OnnxEinsum, WhatDoesNotFitIsNamed) {
  EXPECT_PART(einsum("ij,jk->ik", {{"2", "3"}}).imported(), "the equation has 2 terms, the node 1 inputs");
  EXPECT_PART(einsum("ij->k", {{"2", "3"}}).imported(), "label 'k' of the result is no label of an input");
  EXPECT_PART(einsum("ij->ii", {{"2", "3"}}).imported(), "label 'i' of the result stands there twice");
  EXPECT_PART(einsum("ijk->i", {{"2", "3"}}).imported(), "term 'ijk' does not fit input 0");
  EXPECT_PART(einsum("ij,jk->ik", {{"2", "3"}, {"4", "2"}}).imported(), "label 'j' is for dims of 3 and 4");
  EXPECT_PART(einsum("ii->i", {{"2", "3"}}).imported(), "label 'i' is for dims of 2 and 3");
  EXPECT_PART(einsum("...i->i", {{"2", "3"}}).imported(), "the result has no '...'");
  EXPECT_PART(einsum("...i,...i->...", {{"2", "3"}, {"3"}}).imported(), "'...' stands for 1 dims and for 0");
  EXPECT_PART(einsum("i.->i", {{"2", "3"}}).imported(), "the equation 'i.->i' has a dot that is no part of '...'");
  EXPECT_PART(einsum("i......->i", {{"2", "3"}}).imported(), "the equation has a term 'i..'");
  EXPECT_PART(einsum("i1->i", {{"2", "3"}}).imported(), "the equation has a term 'i1'");
}

} // namespace
} // namespace fusor::tests
