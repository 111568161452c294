#include "runtime/execute/run_error.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::runtime {

char OutOfMemoryError::ID = 0;
char DeviceError::ID = 0;
char CancelledError::ID = 0;
char CheckError::ID = 0;

void OutOfMemoryError::log(llvm::raw_ostream &os) const { os << text; }
void DeviceError::log(llvm::raw_ostream &os) const { os << text; }
void CancelledError::log(llvm::raw_ostream &os) const { os << "interrupted"; }
void CheckError::log(llvm::raw_ostream &os) const { os << text; }

} // namespace fusor::runtime
