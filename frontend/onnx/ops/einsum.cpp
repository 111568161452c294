// Einsum: sums of products by the labels of dims, "bhqd,bhkd->bhqk". Each operand is multiplied into what is there
// already; a label that nothing later and no result has is summed over as soon as it can be. Two operands are one
// matmul: labels of both that stay are its batch, those that go are summed by it.
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <map>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

using Labels = std::vector<int>; // letters; the dims of an ellipsis are kEllipsis, kEllipsis + 1, ...
constexpr int kEllipsis = 256;

/// A tensor whose dims have names, no two the same.
struct Labelled {
  Term x;
  Labels labels;
};

bool has(const Labels &labels, int label) { return llvm::is_contained(labels, label); }

std::string written(int label) { return label < kEllipsis ? std::string(1, static_cast<char>(label)) : "..."; }

// --- the equation

/// "ij,jk->ik" with '.' for "...".
struct Equation {
  llvm::SmallVector<std::string, 2> inputs;
  std::string output;
  bool isExplicit = false;
};

std::optional<Equation> parse(NodeSite &s, std::string text) {
  llvm::erase_value(text, ' ');
  llvm::SmallVector<llvm::StringRef, 4> between;
  llvm::StringRef(text).split(between, "...");
  if (llvm::any_of(between, [](llvm::StringRef piece) { return piece.contains('.'); }))
    return s.fail("the equation '{0}' has a dot that is no part of '...'", text), std::nullopt;
  text = llvm::join(between, ".");
  Equation equation;
  size_t arrow = text.find("->");
  equation.isExplicit = arrow != std::string::npos;
  if (equation.isExplicit) equation.output = text.substr(arrow + 2);
  llvm::SmallVector<llvm::StringRef, 2> parts;
  llvm::StringRef(text).take_front(arrow).split(parts, ',');
  auto isTerm = [](llvm::StringRef term) {
    return term.count('.') <= 1 && llvm::all_of(term, [](char c) { return c == '.' || llvm::isAlpha(c); });
  };
  for (llvm::StringRef part : parts) {
    if (!isTerm(part)) return s.fail("the equation has a term '{0}'", part), std::nullopt;
    equation.inputs.push_back(part.str());
  }
  if (!isTerm(equation.output)) return s.fail("the equation has a result '{0}'", equation.output), std::nullopt;
  if (equation.inputs.size() != s.inputCount())
    return s.fail("the equation has {0} terms, the node {1} inputs", equation.inputs.size(), s.inputCount()),
           std::nullopt;
  return equation;
}

Labels labelsOf(llvm::StringRef term, unsigned ellipsis) {
  Labels labels;
  for (char c : term) {
    if (c != '.') labels.push_back(static_cast<unsigned char>(c));
    for (unsigned i = 0; c == '.' && i < ellipsis; ++i) labels.push_back(kEllipsis + static_cast<int>(i));
  }
  return labels;
}

// Without an arrow: the ellipsis, then the letters that occur once, in the order of the alphabet.
Labels impliedOutput(llvm::ArrayRef<Labelled> operands) {
  std::map<int, unsigned> count;
  for (const Labelled &operand : operands)
    for (int label : operand.labels) ++count[label];
  Labels output;
  for (auto [label, times] : count)
    if (label >= kEllipsis) output.push_back(label);
  for (auto [label, times] : count)
    if (label < kEllipsis && times == 1) output.push_back(label);
  return output;
}

// --- one operand

Labelled ordered(Labelled a, const Labels &order) {
  std::vector<int64_t> perm;
  for (int label : order) perm.push_back(llvm::find(a.labels, label) - a.labels.begin());
  if (llvm::is_sorted(perm)) return a;
  return {a.x.transpose(std::move(perm)), order};
}

// A label that two dims have is the diagonal of the two.
Labelled diagonal(NodeSite &s, Labelled a) {
  for (unsigned i = 0; i < a.labels.size(); ++i)
    for (unsigned j = i + 1; j < a.labels.size() && a.x; ++j) {
      if (a.labels[i] != a.labels[j]) continue;
      const Dim n = a.x.dim(i);
      if (a.x.dim(j) != n && !s.writer().demandEqual(a.x.dim(j), n))
        return {s.fail("label '{0}' is for dims of {1} and {2}", written(a.labels[i]), n.str(), a.x.dim(j).str()), {}};
      std::vector<int64_t> perm;
      Labels rest;
      for (unsigned k = 0; k < a.labels.size(); ++k)
        if (k != i && k != j) perm.push_back(k), rest.push_back(a.labels[k]);
      auto last = static_cast<int64_t>(perm.size());
      Shape flat;
      for (int64_t k : perm) flat.push_back(a.x.dim(k));
      flat.push_back(n * n);
      perm.push_back(i), perm.push_back(j), rest.push_back(a.labels[i]);
      Term places = s.writer().iota({n}, 0) * s.writer().extent(n + Dim(1), DType::i64);
      Term rows = a.x.transpose(std::move(perm)).reshape(std::move(flat));
      a = {s.writer().op("gather", {rows, places}, {{"axis", last}}), rest};
      return diagonal(s, std::move(a)); // a third dim of that name, or other labels
    }
  return a;
}

// Sums over the labels that nobody needs.
Labelled summed(Labelled a, llvm::function_ref<bool(int)> isNeeded) {
  std::vector<int64_t> dims;
  Labels rest;
  for (unsigned i = 0; i < a.labels.size(); ++i) {
    if (isNeeded(a.labels[i]))
      rest.push_back(a.labels[i]);
    else
      dims.push_back(i);
  }
  return dims.empty() ? a : Labelled{a.x.reduce("sum", std::move(dims), false), rest};
}

// --- two operands

Labels joined(std::initializer_list<const Labels *> parts) {
  Labels all;
  for (const Labels *part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// The dims of `labels` in x, as they are or as one.
void append(Shape &shape, const Labelled &a, const Labels &labels, bool asOne) {
  Dim all(1);
  for (int label : labels) {
    const Dim &n = a.x.dim(llvm::find(a.labels, label) - a.labels.begin());
    if (!asOne) shape.push_back(n);
    all = all * n;
  }
  if (asOne) shape.push_back(all);
}

/// Whose labels are whose, in a product of two.
struct Roles {
  Labels batch, left, right, inner;

  Roles(const Labelled &a, const Labelled &b, llvm::function_ref<bool(int)> stays) {
    for (int label : a.labels) (!has(b.labels, label) ? left : stays(label) ? batch : inner).push_back(label);
    for (int label : b.labels)
      if (!has(a.labels, label)) right.push_back(label);
  }
  Labels result() const { return joined({&batch, &left, &right}); }
};

Labelled multiplied(NodeSite &s, const Labelled &a, const Labelled &b, const Roles &roles) {
  Shape result;
  append(result, a, roles.batch, false), append(result, a, roles.left, false), append(result, b, roles.right, false);
  if (roles.inner.empty()) { // each with each
    Shape left, right;
    append(left, a, roles.batch, false), append(left, a, roles.left, false);
    append(right, b, roles.batch, false);
    left.append(roles.right.size(), Dim(1)), right.append(roles.left.size(), Dim(1));
    append(right, b, roles.right, false);
    Term x = ordered(a, joined({&roles.batch, &roles.left})).x.reshape(std::move(left));
    Term y = ordered(b, joined({&roles.batch, &roles.right})).x.reshape(std::move(right));
    return {x * y, roles.result()};
  }
  // [batch, left, inner] x [batch, inner, right], or with the right operand as it lies, [batch, right, inner].
  Labelled across = ordered(a, joined({&roles.batch, &roles.left, &roles.inner}));
  bool transB = b.labels == joined({&roles.batch, &roles.right, &roles.inner});
  Labelled down = transB ? b : ordered(b, joined({&roles.batch, &roles.inner, &roles.right}));
  Shape left, right;
  bool keepsRows = roles.batch.empty() && !roles.left.empty(); // the leading dims of a need no matching ones in b
  append(left, a, roles.batch, false), append(left, a, roles.left, !keepsRows), append(left, a, roles.inner, true);
  append(right, b, roles.batch, false), append(right, b, transB ? roles.right : roles.inner, true);
  append(right, b, transB ? roles.inner : roles.right, true);
  Term y = s.writer().op("matmul", {across.x.reshape(std::move(left)), down.x.reshape(std::move(right))},
                         {{"trans_b", transB}});
  return {y.reshape(std::move(result)), roles.result()};
}

// As the order of `output` wants it: what is not in it stands nowhere.
bool isInOrder(const Labels &labels, const Labels &output) {
  auto place = [&](int label) { return llvm::find(output, label) - output.begin(); };
  return llvm::is_sorted(labels, [&](int a, int b) { return place(a) < place(b); });
}

// --- all of them

// Every label has one size; a dim of an ellipsis that is 1 where others are not is left away.
bool agreeOnSizes(NodeSite &s, llvm::MutableArrayRef<Labelled> operands) {
  std::map<int, Dim> sizes;
  for (const Labelled &operand : operands)
    for (unsigned i = 0; i < operand.labels.size(); ++i) {
      auto [it, isNew] = sizes.try_emplace(operand.labels[i], operand.x.dim(i));
      if (it->first >= kEllipsis && it->second.is(1)) it->second = operand.x.dim(i);
    }
  for (Labelled &operand : operands) {
    Shape shape;
    Labels labels;
    for (unsigned i = 0; i < operand.labels.size(); ++i) {
      int label = operand.labels[i];
      const Dim &n = operand.x.dim(i), &size = sizes.find(label)->second;
      if (label >= kEllipsis && n.is(1) && !size.is(1)) continue;
      if (n != size && !s.writer().demandEqual(n, size))
        return s.fail("label '{0}' is for dims of {1} and {2}", written(label), size.str(), n.str()), false;
      shape.push_back(n), labels.push_back(label);
    }
    operand = {operand.x.reshape(std::move(shape)), labels};
  }
  return true;
}

void einsum(NodeSite &s) {
  auto equation = parse(s, s.text("equation", ""));
  if (!equation) return;
  DType dtype = s.type(0).dtype;
  std::vector<Labelled> operands;
  std::optional<unsigned> ellipsis;
  for (unsigned i = 0; i < equation->inputs.size(); ++i) {
    llvm::StringRef term = equation->inputs[i];
    Term x = s.in(i);
    if (!x) return;
    if (x.dtype() != dtype || dtype == DType::i1)
      return void(s.fail("inputs are {0} and {1}", ir::name(dtype), ir::name(x.dtype())));
    bool isOpen = term.contains('.');
    unsigned letters = term.size() - isOpen;
    if (isOpen ? x.rank() < letters : x.rank() != letters)
      return void(s.fail("term '{0}' does not fit input {1}, {2}", equation->inputs[i], i, x.typeText()));
    unsigned dims = x.rank() - letters;
    if (isOpen && ellipsis && *ellipsis != dims)
      return void(s.fail("'...' stands for {0} dims and for {1}", *ellipsis, dims));
    if (isOpen) ellipsis = dims;
    if (!x.isFloat()) x = x.cast(DType::f64); // exact below 2^53
    operands.push_back({x, labelsOf(term, dims)});
  }
  Labels output = equation->isExplicit ? labelsOf(equation->output, ellipsis.value_or(0)) : impliedOutput(operands);
  for (Labelled &operand : operands) operand = diagonal(s, std::move(operand));
  if (s.failed() || !agreeOnSizes(s, operands)) return;
  for (unsigned i = 0; i < output.size(); ++i) {
    bool isThere = llvm::any_of(operands, [&](const Labelled &o) { return has(o.labels, output[i]); });
    if (!isThere || std::count(output.begin(), output.end(), output[i]) > 1)
      return void(s.fail("label '{0}' of the result {1}", written(output[i]),
                         isThere ? "stands there twice" : "is no label of an input"));
  }
  if (ellipsis.value_or(0) && equation->isExplicit && equation->output.find('.') == std::string::npos)
    return void(s.fail("the result has no '...' for the dims that inputs have there"));

  Labelled all = operands[0];
  for (unsigned i = 1; i < operands.size() && all.x; ++i) {
    auto stays = [&](int label) {
      return has(output, label) || llvm::any_of(llvm::makeArrayRef(operands).drop_front(i + 1),
                                                [&](const Labelled &later) { return has(later.labels, label); });
    };
    Labelled next = operands[i];
    Labels own = next.labels;
    all = summed(all, [&](int label) { return stays(label) || has(own, label); });
    next = summed(next, [&](int label) { return stays(label) || has(all.labels, label); });
    Roles roles(all, next, stays), swapped(next, all, stays);
    if (!isInOrder(roles.result(), output) && isInOrder(swapped.result(), output))
      all = multiplied(s, next, all, swapped);
    else
      all = multiplied(s, all, next, roles);
  }
  all = ordered(summed(all, [&](int label) { return has(output, label); }), output);
  if (ir::isFloat(dtype) || !all.x) return s.out(0, all.x);
  s.out(0, castTo(all.x.cast(DType::i64), dtype));
}

} // namespace

llvm::ArrayRef<OpEntry> einsumOperators() {
  static const std::vector<OpEntry> entries = {{"", "Einsum", 12, einsum}};
  return entries;
}

} // namespace fusor::onnx
