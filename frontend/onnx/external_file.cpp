#include "frontend/onnx/external_file.h"
#include "frontend/onnx/error.h"
#include "frontend/onnx/names.h"
#include "model.pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace fusor::onnx {
namespace {

// Closes on leaving.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&o) : fd(std::exchange(o.fd, -1)) {}
  Descriptor &operator=(Descriptor &&o) {
    std::swap(fd, o.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

struct Place {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

llvm::Expected<int64_t> decimal(llvm::StringRef key, llvm::StringRef text) {
  int64_t value = 0;
  bool isPlain = !text.empty() && text.size() < 20 && llvm::all_of(text, llvm::isDigit);
  if (!isPlain || text.getAsInteger(10, value))
    return problem("external_data {0} must be a number, is '{1}'", key, shown(text));
  return value;
}

llvm::Expected<Place> placeOf(const Tensor &tensor) {
  Place place;
  bool hasLocation = false;
  for (const StringPair &pair : tensor.external_data()) {
    llvm::StringRef key = pair.key(), value = pair.value();
    if (key == "location") {
      place.location = value.str(), hasLocation = true;
    } else if (key == "offset" || key == "length") {
      auto number = decimal(key, value);
      if (!number) return number.takeError();
      if (key == "offset")
        place.offset = *number;
      else
        place.length = *number;
    } // checksum, basepath and whatever else: without meaning here
  }
  if (!hasLocation) return problem("is external and says no location");
  return place;
}

llvm::Error badLocation(llvm::StringRef location, llvm::StringRef why) {
  return problem("its location '{0}' {1}; side files are read from the model's folder only", shown(location), why);
}

// The parts of a path below the folder.
llvm::Expected<llvm::SmallVector<llvm::StringRef, 4>> partsOf(llvm::StringRef location) {
  if (location.empty()) return badLocation(location, "is empty");
  if (location.contains('\0')) return badLocation(location, "has a NUL in it");
  if (location.contains('\\')) return badLocation(location, "has a backslash in it");
  if (location.front() == '/') return badLocation(location, "is absolute");
  if (location.size() > 1 && location[1] == ':') return badLocation(location, "names a drive");
  if (location.size() > 4096) return badLocation(location.take_front(100), "is longer than a path");
  llvm::SmallVector<llvm::StringRef, 4> parts, kept;
  location.split(parts, '/');
  for (llvm::StringRef part : parts) {
    if (part == "..") return badLocation(location, "leads out of its folder");
    if (!part.empty() && part != ".") kept.push_back(part);
  }
  if (kept.empty()) return badLocation(location, "names no file");
  return kept;
}

// Opened part by part, so that no link is followed on the way.
llvm::Expected<Descriptor> openBelow(llvm::StringRef folder, llvm::StringRef location) {
  auto parts = partsOf(location);
  if (!parts) return parts.takeError();
  Descriptor at(open(folder.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; at.fd >= 0 && i < parts->size(); ++i) {
    int kind = i + 1 < parts->size() ? O_DIRECTORY : O_NONBLOCK;
    at = Descriptor(openat(at.fd, (*parts)[i].str().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  if (at.fd < 0) {
    int code = errno;
    if (code == ELOOP) return badLocation(location, "is a symbolic link");
    if (code == ENOTDIR) return badLocation(location, "passes through something that is no folder");
    return problem("its side file '{0}' cannot be read: {1}", shown(location), std::strerror(code));
  }
  struct stat status;
  if (fstat(at.fd, &status) != 0 || !S_ISREG(status.st_mode)) return badLocation(location, "is no regular file");
  if (status.st_nlink > 1) return badLocation(location, "is a hard link (copy the file to break it)");
  return at;
}

} // namespace

llvm::Expected<std::vector<char>> readExternal(const Tensor &tensor, llvm::StringRef folder, int64_t bytes) {
  auto place = placeOf(tensor);
  if (!place) return place.takeError();
  if (folder.empty())
    return problem("is external, and a model in memory has no folder to read '{0}' from", shown(place->location));
  auto file = openBelow(folder, place->location);
  if (!file) return file.takeError();
  if (place->length && *place->length != bytes)
    return problem("has {0} bytes in '{1}', its dims ask for {2}", *place->length, shown(place->location), bytes);
  struct stat status;
  int64_t end = 0;
  if (fstat(file->fd, &status) != 0 || llvm::AddOverflow(place->offset, bytes, end) || end > status.st_size)
    return problem("needs bytes {0} to {1} of '{2}', which has {3}", place->offset,
                   static_cast<uint64_t>(place->offset) + bytes, shown(place->location),
                   static_cast<int64_t>(status.st_size));
  std::vector<char> content(bytes); // read, not mapped: a file that shrinks later would be a SIGBUS
  for (int64_t done = 0; done < bytes;) {
    ssize_t n = pread(file->fd, content.data() + done, bytes - done, place->offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return problem("cannot be read from '{0}': {1}", shown(place->location),
                     n ? std::strerror(errno) : "it ends early");
    done += n;
  }
  return content;
}

} // namespace fusor::onnx
