#include "frontend/api/tensor_files.h"
#include "frontend/api/errors.h"
#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/npy.h"
#include "runtime/checkpoint/tensor_info.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cmath>

namespace fusor::frontend {
namespace {

struct RawForm {
  const char *ending;
  ir::DType dtype, stored;
};
constexpr RawForm kRawForms[] = {{".bf16.npy", ir::DType::bf16, ir::DType::u16},
                                 {".e4m3fn.npy", ir::DType::f8e4m3, ir::DType::u8},
                                 {".e5m2.npy", ir::DType::f8e5m2, ir::DType::u8},
                                 {".e8m0.npy", ir::DType::f8e8m0, ir::DType::u8}};

const RawForm *rawForm(ir::DType dtype) {
  for (const RawForm &form : kRawForms)
    if (form.dtype == dtype) return &form;
  return nullptr;
}

} // namespace

std::string tensorFileStem(llvm::StringRef kind, unsigned index, llvm::StringRef name) {
  std::string stem = (kind + "_" + llvm::Twine(index) + "_").str();
  for (char c : name) stem += llvm::isAlnum(c) || c == '_' || c == '.' || c == '-' ? c : '_';
  return stem;
}

std::string findTensorFile(llvm::StringRef folder, llvm::StringRef stem) {
  llvm::SmallVector<llvm::StringRef, 5> endings{".npy"};
  for (const RawForm &form : kRawForms) endings.push_back(form.ending);
  for (llvm::StringRef ending : endings) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, stem + ending);
    if (llvm::sys::fs::exists(path)) return path.str().str();
  }
  return "";
}

llvm::Expected<HostTensor> readTensorFile(llvm::StringRef path, ir::DType wanted) {
  auto array = runtime::readNpy(path);
  if (!array) return array.takeError();
  const RawForm *raw = rawForm(wanted);
  bool fits = array->dtype == wanted || (raw && array->dtype == raw->stored && path.endswith(raw->ending));
  if (!fits)
    return inputError(
        "'{0}' has {1} elements, {2} is wanted{3}", path, ir::name(array->dtype), ir::name(wanted),
        raw ? llvm::formatv(": store its bits as {0} in a file *{1}", ir::name(raw->stored), raw->ending).str() : "");
  return HostTensor{wanted, array->shape, std::vector<char>(array->bytes.begin(), array->bytes.end())};
}

llvm::Error writeTensorFile(llvm::StringRef folder, llvm::StringRef stem, const HostTensor &tensor) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return llvm::make_error<runtime::FileError>(runtime::FileError::Action::Write, folder, code);
  const RawForm *raw = rawForm(tensor.dtype);
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, stem + (raw ? raw->ending : ".npy"));
  return runtime::writeNpy(path, raw ? raw->stored : tensor.dtype, tensor.shape,
                           {reinterpret_cast<const uint8_t *>(tensor.bytes.data()), tensor.bytes.size()});
}

Comparison compare(const HostTensor &found, const HostTensor &expected, double atol, double rtol) {
  Comparison c;
  for (int64_t i = 0, n = expected.elements(); i < n; ++i) {
    double f = ir::loadElement(found.dtype, found.bytes.data(), i);
    double e = ir::loadElement(expected.dtype, expected.bytes.data(), i);
    if (f == e || (std::isnan(f) && std::isnan(e))) continue;
    double apart = std::fabs(f - e);
    if (!(apart <= c.worst)) c.worst = apart;
    if (apart <= atol + rtol * std::fabs(e)) continue;
    if (c.mismatches++ == 0) c.first = i, c.found = f, c.expected = e;
  }
  c.agrees = c.mismatches == 0;
  return c;
}

} // namespace fusor::frontend
