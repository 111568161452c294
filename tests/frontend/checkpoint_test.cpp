// Checkpoint folders: complete or not there, whatever happens in between.
#include "frontend/api/checkpoint.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/errors.h"
#include "frontend/nn/modules.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <csignal>
#include <fstream>
#include <sys/resource.h>

namespace {
using namespace fusor;
using namespace fusor::frontend;

std::unique_ptr<runtime::Program> tinyProgram(uint64_t seed) {
  CompileRequest request;
  request.pipeline = passes::PipelineKind::train;
  auto compiled = compileModule(nn::gptForward({.layers = 1}), {}, std::move(request));
  EXPECT_TRUE(bool(compiled));
  EXPECT_FALSE(bool((*compiled).program->initialize(seed)));
  return std::move(compiled->program);
}

std::vector<char> valueOf(runtime::Program &program, llvm::StringRef name) {
  std::vector<char> bytes(*program.persistentBytes(name));
  EXPECT_FALSE(bool(program.readPersistent(name, bytes)));
  return bytes;
}

llvm::json::Object info(int64_t step) { return llvm::json::Object{{"step", step}, {"seed", 1}}; }

TEST(Checkpoint, FilesAndNamesAreThoseOfTheContract) {
  TemporaryFolder folder;
  auto program = tinyProgram(1);
  ASSERT_FALSE(bool(saveCheckpoint(*program, folder.path("c"), info(7))));
  auto model = runtime::SafetensorsFile::open(folder.path("c/model.safetensors"));
  auto optimizer = runtime::SafetensorsFile::open(folder.path("c/optimizer.safetensors"));
  ASSERT_TRUE(bool(model) && bool(optimizer));
  EXPECT_NE(model->find("blocks.0.qkv.weight"), nullptr);
  EXPECT_EQ(model->find("adamw.step"), nullptr);
  for (const char *name : {"adamw.step", "adamw.m.emb.weight", "adamw.v.blocks.0.fc1.bias", "optimizer.lr"})
    EXPECT_NE(optimizer->find(name), nullptr) << name;
  EXPECT_EQ(model->metadata().at("step"), "7");
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path("c/.next")));
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path("c/.next.tmp")));
}

TEST(Checkpoint, LoadingGivesTheSameBits) {
  TemporaryFolder folder;
  auto one = tinyProgram(1), other = tinyProgram(2);
  ASSERT_FALSE(bool(saveCheckpoint(*one, folder.path("c"), info(0))));
  EXPECT_NE(valueOf(*one, "emb.weight"), valueOf(*other, "emb.weight"));
  ASSERT_FALSE(bool(loadCheckpoint(*other, folder.path("c"), {})));
  for (const auto &p : one->module().persistents())
    EXPECT_EQ(valueOf(*one, p->name), valueOf(*other, p->name)) << p->name;
}

TEST(Checkpoint, AFullDiskLeavesTheOldOne) {
  TemporaryFolder folder;
  auto one = tinyProgram(1), other = tinyProgram(2);
  ASSERT_FALSE(bool(saveCheckpoint(*one, folder.path("c"), info(1))));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{};
  getrlimit(RLIMIT_FSIZE, &before);
  small = before, small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  Error error = toPublic(saveCheckpoint(*other, folder.path("c"), info(2)));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(error.exitCode(), 74) << error.text();
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path("c/.next.tmp")));
  EXPECT_EQ(readCheckpointInfo(folder.path("c"))->getInteger("step").getValueOr(-1), 1);
  ASSERT_FALSE(bool(loadCheckpoint(*other, folder.path("c"), {})));
  EXPECT_EQ(valueOf(*one, "emb.weight"), valueOf(*other, "emb.weight"));
}

TEST(Checkpoint, ACrashWhileFilesMoveLosesNothing) {
  TemporaryFolder folder;
  auto before = tinyProgram(1), after = tinyProgram(2), loaded = tinyProgram(3);
  ASSERT_FALSE(bool(saveCheckpoint(*before, folder.path("c"), info(1))));
  ASSERT_FALSE(bool(saveCheckpoint(*after, folder.path("c/.next"), info(2))));
  // The model had been moved, the rest had not.
  ASSERT_FALSE(
      bool(llvm::sys::fs::rename(folder.path("c/.next/model.safetensors"), folder.path("c/model.safetensors"))));
  EXPECT_EQ(readCheckpointInfo(folder.path("c"))->getInteger("step").getValueOr(-1), 2);
  ASSERT_FALSE(bool(loadCheckpoint(*loaded, folder.path("c"), {})));
  for (const char *name : {"emb.weight", "adamw.step"}) EXPECT_EQ(valueOf(*after, name), valueOf(*loaded, name));
  // The next save finishes it first.
  ASSERT_FALSE(bool(saveCheckpoint(*before, folder.path("c"), info(3))));
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path("c/.next")));
  EXPECT_EQ(readCheckpointInfo(folder.path("c"))->getInteger("step").getValueOr(-1), 3);
}

TEST(Checkpoint, WhatIsNoCheckpointIsRefused) {
  TemporaryFolder folder;
  auto says = [&](const std::string &json) {
    std::ofstream(folder.path("checkpoint.json")) << json;
    auto read = readCheckpointInfo(folder.path(""));
    return read ? "" : llvm::toString(read.takeError());
  };
  auto absent = readCheckpointInfo(folder.path("nothing"));
  EXPECT_NE(llvm::toString(absent.takeError()).find("is no checkpoint: cannot read checkpoint.json"),
            std::string::npos);
  EXPECT_NE(says("{").find("checkpoint.json"), std::string::npos);
  EXPECT_NE(says("[]").find("has no \"format_version\""), std::string::npos);
  EXPECT_NE(says("{\"format_version\": 9}").find("has format version 9, this Fusor reads 1"), std::string::npos);
}

TEST(Checkpoint, AStateThatIsMissingIsNamed) {
  TemporaryFolder folder;
  auto program = tinyProgram(1);
  ASSERT_FALSE(bool(saveCheckpoint(*program, folder.path("c"), info(1))));
  llvm::sys::fs::remove(folder.path("c/optimizer.safetensors"));
  std::vector<std::string> missing;
  ASSERT_FALSE(bool(loadCheckpoint(*program, folder.path("c"), {}, &missing)));
  EXPECT_NE(std::find(missing.begin(), missing.end(), "adamw.step"), missing.end());
}

} // namespace
