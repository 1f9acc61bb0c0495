// What determinism tests do with runs: bytes of their models, interruptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "margrave/model.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {

inline Dataset many_chains() {
  return random_chains(71, {.examples = 60, .states = 4, .shortest = 1, .longest = 6, .inputs = 12});
}

inline TrainOptions few_epochs(TrainOptions options) {
  options.gap = 1e-9;
  options.max_epochs = 6;
  options.evaluate_every = 2;
  return options;
}

// The bytes of the model file: weights, certificate and everything else.
inline std::string model_bytes(const TrainResult& result, const ScratchFolder& folder) {
  save_model(result.model, folder.file("model"));
  return read_file(folder.file("model"));
}

// Runs until on_progress was called `blocks` times, writing a checkpoint.
inline TrainResult train_for(const Dataset& data, TrainOptions options, const std::string& checkpoint,
                             std::uint64_t blocks) {
  std::atomic<bool> stop = false;
  std::uint64_t calls = 0;
  Hooks hooks;
  hooks.stop = &stop;
  hooks.on_progress = [&](std::uint64_t, double) { stop = ++calls >= blocks; };
  options.checkpoint = checkpoint;
  return train(data, options, hooks);
}

}  // namespace margrave::test
