// Small ONNX models for tests, built from the messages themselves.
#pragma once
#include "frontend/onnx/import.h"
#include "model.pb.h"

namespace fusor::tests {

/// Element types, as the format numbers them.
constexpr int32_t kFloat = 1, kUint8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kUint4 = 21, kInt4 = 22;

class ModelBuilder {
public:
  explicit ModelBuilder(int64_t opset = 21) {
    model.set_ir_version(10);
    import("", opset);
  }
  onnx::Model model;

  void import(llvm::StringRef domain, int64_t version) {
    auto *set = model.add_opset_import();
    set->set_domain(domain.str());
    set->set_version(version);
  }
  /// A dim is a number, or a name.
  ModelBuilder &input(llvm::StringRef name, std::vector<std::string> dims, int32_t type = kFloat) {
    auto *info = model.mutable_graph()->add_input();
    info->set_name(name.str());
    info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    auto *shape = info->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const std::string &dim : dims) {
      int64_t number = 0;
      if (llvm::StringRef(dim).getAsInteger(10, number))
        shape->add_dim()->set_dim_param(dim);
      else
        shape->add_dim()->set_dim_value(number);
    }
    return *this;
  }
  ModelBuilder &output(llvm::StringRef name, int32_t type = kFloat) {
    auto *info = model.mutable_graph()->add_output();
    info->set_name(name.str());
    info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  onnx::Tensor &initializer(llvm::StringRef name, std::vector<int64_t> dims, int32_t type) {
    auto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name.str());
    tensor->set_data_type(type);
    for (int64_t dim : dims) tensor->add_dims(dim);
    return *tensor;
  }
  ModelBuilder &ints(llvm::StringRef name, std::vector<int64_t> values) {
    onnx::Tensor &t = initializer(name, {static_cast<int64_t>(values.size())}, 7);
    for (int64_t value : values) t.add_int64_data(value);
    return *this;
  }
  onnx::Node &node(llvm::StringRef op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
    auto *node = model.mutable_graph()->add_node();
    node->set_op_type(op.str());
    node->set_name("n_" + outputs.at(0));
    for (const std::string &name : inputs) node->add_input(name);
    for (const std::string &name : outputs) node->add_output(name);
    return *node;
  }
  static onnx::Attribute &newAttribute(onnx::Node &node, llvm::StringRef name, int32_t type) {
    auto *a = node.add_attribute();
    a->set_name(name.str());
    a->set_type(type);
    return *a;
  }
  static void attribute(onnx::Node &node, llvm::StringRef name, int64_t value) {
    newAttribute(node, name, 2).set_i(value);
  }
  static void realAttribute(onnx::Node &node, llvm::StringRef name, double value) {
    newAttribute(node, name, 1).set_f(static_cast<float>(value));
  }
  static void textAttribute(onnx::Node &node, llvm::StringRef name, llvm::StringRef value) {
    newAttribute(node, name, 3).set_s(value.str());
  }
  static void listAttribute(onnx::Node &node, llvm::StringRef name, std::vector<int64_t> values) {
    auto &a = newAttribute(node, name, 7);
    for (int64_t value : values) a.add_ints(value);
  }

  /// A node of another domain, which is imported in its version 1.
  onnx::Node &nodeOf(llvm::StringRef domain, llvm::StringRef op, std::vector<std::string> inputs,
                     std::vector<std::string> outputs) {
    import(domain, 1);
    onnx::Node &made = node(op, std::move(inputs), std::move(outputs));
    made.set_domain(domain.str());
    return made;
  }

  std::string bytes() const { return model.SerializeAsString(); }
  /// The module's text, or the error's.
  std::string imported(const onnx::ImportOptions &options = {}, llvm::StringRef folder = "") const {
    auto result = onnx::importBytes(bytes(), "m.onnx", folder, options);
    return result ? result->module->str() : llvm::toString(result.takeError());
  }
};

} // namespace fusor::tests
