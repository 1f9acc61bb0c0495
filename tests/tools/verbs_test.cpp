// What each verb prints, and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

class Verbs : public Workshop {};

using Names = std::vector<std::string>;

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(Verbs, TrainPrintsProgressToStderrAndTheResultToStdout) {
  const Finished finished =
      run({"train", "train.jsonl", "--test", "test.jsonl", "--lambda", "0.1", "--gap", "0.05"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_NE(finished.error.find("epoch 1 "), std::string::npos);
  EXPECT_EQ(finished.error.find('\r'), std::string::npos);  // no terminal, no redrawing
  for (const char* text : {"converged", "primal", "dual", "certified gap", "training error", "held-out error",
                           "memory", "not saved"})
    EXPECT_NE(finished.out.find(text), std::string::npos) << text;
  EXPECT_EQ(finished.out.find("epoch 1 "), std::string::npos);
}

TEST_F(Verbs, QuietTrainingSaysNothing) {
  for (const Names& arguments : {Names{"train", "train.jsonl", "-q", "--max-epochs", "2"},
                                 Names{"-q", "train", "train.jsonl", "--max-epochs", "2"}}) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(finished.error, "");
  }
}

TEST_F(Verbs, TrainJsonIsOneObjectWithTheKeysOfTheContract) {
  const auto json = json_of({"train", "train.jsonl", "--test", "test.jsonl", "-q", "--json", "--lambda",
                             "0.1", "--gap", "0.05", "--threads", "2"});
  EXPECT_EQ(keys(json), (Names{"status", "solver", "objective", "epochs", "oracle_calls", "seconds",
                               "threads", "memory_bytes", "nonzero_weights", "dimension", "train", "test"}));
  EXPECT_EQ(keys(json["objective"]),
            (Names{"primal", "dual", "gap", "relative_gap", "certified", "relaxation"}));
  EXPECT_EQ(keys(json["test"]), (Names{"hamming", "zero_one", "f1", "solved_exactly"}));
  EXPECT_EQ(json["status"], "converged");
  EXPECT_EQ(json["solver"], "bcfw");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["objective"]["certified"], true);
  EXPECT_LE(json["objective"]["relative_gap"], 0.05);
  EXPECT_TRUE(json_of({"train", "train.jsonl", "-q", "--json", "--max-epochs", "1"})["test"].is_null());
}

TEST_F(Verbs, ALimitReachedIsASuccessWithThatStatus) {
  EXPECT_EQ(json_of({"train", "train.jsonl", "-q", "--json", "--gap", "0", "--max-epochs", "2"})["status"],
            "epoch_limit");
  EXPECT_EQ(json_of({"train", "train.jsonl", "-q", "--json", "--gap", "0", "--max-epochs", "100000000",
                     "--max-seconds", "0.2"})["status"],
            "time_limit");
}

TEST_F(Verbs, TraceHasOneLinePerEvaluation) {
  const auto summary = json_of(
      {"train", "train.jsonl", "-q", "--json", "--gap", "0", "--max-epochs", "4", "--trace", "trace.jsonl"});
  const std::string text = read_file(directory->file("trace.jsonl"));
  ASSERT_GE(lines(text), 4U);
  const auto first = nlohmann::ordered_json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(keys(first), (Names{"epoch", "train_seconds", "wall_seconds", "oracle_calls", "primal", "dual",
                                "gap", "relative_gap", "certified"}));
  const std::size_t last = text.rfind('\n', text.size() - 2);
  EXPECT_EQ(nlohmann::ordered_json::parse(text.substr(last + 1))["primal"], summary["objective"]["primal"]);
}

TEST_F(Verbs, CertifyAgreesWithTraining) {
  const auto trained = json_of(
      {"train", "train.jsonl", "-q", "--json", "--lambda", "0.2", "--gap", "0.02", "--model", "c.model"});
  const auto certified = json_of({"certify", "c.model", "train.jsonl", "-q", "--json"});
  EXPECT_EQ(keys(certified), (Names{"primal", "dual", "gap", "relative_gap", "certified", "relaxation",
                                    "weight_distance", "infeasibility"}));
  EXPECT_EQ(certified["certified"], true);
  for (const char* key : {"primal", "dual"})
    EXPECT_NEAR(certified[key].get<double>(), trained["objective"][key].get<double>(), 1e-9) << key;
  EXPECT_LT(certified["weight_distance"].get<double>(), 1e-9);
  EXPECT_NE(run({"certify", "c.model", "train.jsonl"}).out.find("relative gap"), std::string::npos);
  EXPECT_EQ(run({"certify", "c.model", "test.jsonl"}).code, 3);
}

TEST_F(Verbs, CertifyAgreesWithTrainingOfCliqueWiseSolvers) {
  ASSERT_EQ(run({"generate", "multilabel", "--examples", "20", "-o", "full.jsonl"}).code, 0);
  for (const auto& [data, relaxation] :
       {std::pair{"train.jsonl", "exact"}, {"full.jsonl", "local-polytope"}}) {
    const auto trained = json_of({"train", data, "-q", "--json", "--lambda", "0.2", "--max-epochs", "10",
                                  "--solver", "idal", "--model", "i.model"});
    const auto certified = json_of({"certify", "i.model", data, "-q", "--json"});
    EXPECT_EQ(certified["relaxation"], relaxation);
    EXPECT_EQ(certified["relaxation"], trained["objective"]["relaxation"]);
    EXPECT_EQ(certified["certified"], true);
    EXPECT_NEAR(certified["dual"].get<double>(), trained["objective"]["dual"].get<double>(), 1e-6);
    EXPECT_LE(certified["primal"].get<double>(), trained["objective"]["primal"].get<double>() + 1e-6);
    EXPECT_NE(run({"certify", "i.model", data}).out.find(relaxation), std::string::npos);
  }
}

TEST_F(Verbs, WithoutCertificateThereIsNoDual) {
  ASSERT_EQ(
      run({"train", "train.jsonl", "-q", "--max-epochs", "2", "--no-certificate", "--model", "n.model"}).code,
      0);
  const auto certified = json_of({"certify", "n.model", "train.jsonl", "--json"});
  EXPECT_TRUE(certified["dual"].is_null());
  EXPECT_EQ(certified["certified"], false);
}

TEST_F(Verbs, EvalAgreesWithTheSummaryOfTraining) {
  const auto trained = json_of({"train", "train.jsonl", "--test", "test.jsonl", "-q", "--json",
                                "--max-epochs", "5", "--model", "e.model"});
  const auto scored = json_of({"eval", "e.model", "test.jsonl", "--json", "--verbose"});
  for (const char* key : {"hamming", "zero_one", "f1", "solved_exactly"})
    EXPECT_EQ(scored[key], trained["test"][key]) << key;
  EXPECT_EQ(scored["examples"], 20);
  EXPECT_FALSE(scored["labels"].empty());
  EXPECT_NE(run({"eval", "e.model", "test.jsonl", "-v"}).out.find("precision"), std::string::npos);
}

TEST_F(Verbs, PredictPrintsOneJsonLinePerExample) {
  const Finished finished = run({"predict", "first.model", "test.jsonl"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(lines(finished.out), 20U);
  const auto first = nlohmann::ordered_json::parse(finished.out.substr(0, finished.out.find('\n')));
  EXPECT_EQ(keys(first), (Names{"id", "labels", "score", "bound", "proven", "persistent"}));
  EXPECT_EQ(first["labels"].size(), 8U);
  ASSERT_EQ(run({"predict", "first.model", "test.jsonl", "-o", "labels.out", "-q"}).out, "");
  EXPECT_EQ(read_file(directory->file("labels.out")), finished.out);
  EXPECT_EQ(json_of({"predict", "first.model", "test.jsonl", "--json"})["predictions"].size(), 20U);
}

TEST_F(Verbs, PredictAndEvalTakeAnInference) {
  const auto exact = json_of({"predict", "first.model", "test.jsonl", "--json", "--inference", "exact"});
  const auto diffused = json_of({"predict", "first.model", "test.jsonl", "--json", "--inference", "msd"});
  EXPECT_EQ(exact["solved_exactly"], 1.0);
  // Chains: the relaxation is tight.
  for (std::size_t m = 0; m < 20; ++m)
    EXPECT_NEAR(diffused["predictions"][m]["score"].get<double>(),
                exact["predictions"][m]["bound"].get<double>(), 1e-6);
  const auto relaxed = json_of({"predict", "first.model", "test.jsonl", "--json", "--inference", "lp"});
  EXPECT_EQ(relaxed["solved_exactly"], 1.0);
  EXPECT_EQ(relaxed["predictions"][0]["persistent"], 8);
  EXPECT_EQ(run({"eval", "first.model", "test.jsonl", "--inference", "msd", "--tighten", "2"}).code, 0);
  EXPECT_EQ(run({"eval", "first.model", "test.jsonl", "--inference", "lp"}).code, 0);
  for (const char* verb : {"predict", "eval"}) {
    EXPECT_EQ(run({verb, "first.model", "test.jsonl", "--inference", "roof-dual"}).code, 0);
    EXPECT_EQ(run({verb, "first.model", "test.jsonl", "--inference", "lp", "--tighten", "2"}).code, 2);
  }
  for (const char* flag : {"--marginals", "--nbest=2"}) {
    const Finished refused = run({"predict", "first.model", "test.jsonl", "--inference", "msd", flag});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.error.find("need exact inference"), std::string::npos);
  }
}

TEST_F(Verbs, ErrorsAfterTrainingAreThoseOfTheInferenceOfTheRun) {
  for (const auto& [file, seed] : {std::pair{"pairs.jsonl", "1"}, std::pair{"others.jsonl", "2"}})
    ASSERT_EQ(run({"generate", "multilabel", "--variables", "16", "--states", "2", "--examples", "100",
                   "--seed", seed, "-o", file})
                  .code,
              0);
  const Names training = {"train", "pairs.jsonl", "--test", "others.jsonl", "--lambda",
                          "0.03",  "-q",          "--json", "-o",           "pairs.model"};
  const auto exact = json_of(training);
  EXPECT_EQ(exact["train"]["solved_exactly"], 1.0);
  EXPECT_EQ(exact["test"]["solved_exactly"], 1.0);
  Names asked = training;
  asked.insert(asked.end(), {"--inference", "roof-dual"});
  const auto relaxed = json_of(asked);
  EXPECT_LT(relaxed["train"]["solved_exactly"], 1.0);
  EXPECT_LT(relaxed["test"]["solved_exactly"], 1.0);
  for (const auto& [name, file] : {std::pair{"train", "pairs.jsonl"}, std::pair{"test", "others.jsonl"}}) {
    const auto evaluated = json_of({"eval", "pairs.model", file, "--json", "--inference", "roof-dual"});
    for (const char* key : {"hamming", "zero_one", "f1", "solved_exactly"})
      EXPECT_EQ(relaxed[name][key], evaluated[key]) << name << " " << key;
    EXPECT_EQ(json_of({"eval", "pairs.model", file, "--json"})["solved_exactly"], 1.0);
  }
}

TEST_F(Verbs, PredictAddsMarginalsAndTheBestFew) {
  const std::string out = run({"predict", "first.model", "test.jsonl", "--nbest", "3", "--marginals"}).out;
  const auto first = nlohmann::ordered_json::parse(out.substr(0, out.find('\n')));
  ASSERT_EQ(first["nbest"].size(), 3U);
  EXPECT_GE(first["nbest"][0]["score"].get<double>(), first["nbest"][1]["score"].get<double>());
  EXPECT_EQ(first["nbest"][0]["labels"], first["labels"]);
  ASSERT_EQ(first["marginals"].size(), 8U);
  for (const auto& row : first["marginals"])
    EXPECT_NEAR(row[0].get<double>() + row[1].get<double>(), 1, 1e-9);
}

TEST_F(Verbs, DumpListsEveryWeightOnce) {
  const Finished finished = run({"dump", "first.model"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(lines(finished.out), 2U * 6U + 4U);
  EXPECT_EQ(json_of({"dump", "first.model", "--json"})["weights"].size(), 16U);
  EXPECT_EQ(lines(run({"dump", "first.model", "--top", "1"}).out), 2U + 1U);
}

TEST_F(Verbs, CheckWritesNothingAndCountsEverything) {
  const Finished finished = run({"check", "train.jsonl"});
  EXPECT_EQ(finished.code, 0);
  for (const char* text : {"40 examples", "320 variables", "templates", "suspicious", "forecast"})
    EXPECT_NE(finished.out.find(text), std::string::npos) << text;
  const auto json = json_of({"check", "train.jsonl", "--json"});
  EXPECT_EQ(json["examples"], 40);
  EXPECT_EQ(json["structure"]["chain"], 40);
}

TEST_F(Verbs, ConvertedDataTrainsTheSameModel) {
  ASSERT_EQ(run({"convert", "train.jsonl", "train.mgd", "-q"}).code, 0);
  ASSERT_EQ(run({"convert", "train.mgd", "again.jsonl", "-q"}).code, 0);
  const Names flags = {"-q", "--max-epochs", "3", "--lambda", "0.1"};
  for (const char* name : {"train.jsonl", "train.mgd", "again.jsonl"}) {
    Names arguments = {"train", name, "--model", std::string(name) + ".model"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    ASSERT_EQ(run(arguments).code, 0);
  }
  const std::string weights = run({"dump", "train.jsonl.model"}).out;
  EXPECT_EQ(run({"dump", "train.mgd.model"}).out, weights);
  EXPECT_EQ(run({"dump", "again.jsonl.model"}).out, weights);
  EXPECT_EQ(run({"certify", "train.jsonl.model", "train.mgd"}).code, 0);
}

TEST_F(Verbs, GenerateRepeatsItselfAndKnowsThreeKinds) {
  for (const char* kind : {"potts", "sequence", "multilabel"}) {
    ASSERT_EQ(run({"generate", kind, "--examples", "3", "--seed", "5", "-o", "one.jsonl"}).code, 0) << kind;
    ASSERT_EQ(run({"generate", kind, "--examples", "3", "--seed", "5", "-o", "two.jsonl"}).code, 0);
    ASSERT_EQ(run({"generate", kind, "--examples", "3", "--seed", "6", "-o", "three.jsonl"}).code, 0);
    EXPECT_EQ(read_file(directory->file("one.jsonl")), read_file(directory->file("two.jsonl")));
    EXPECT_NE(read_file(directory->file("one.jsonl")), read_file(directory->file("three.jsonl")));
  }
}

// Three words of two letters in three folds, 128 pixels of which the first tells the letter.
std::string letter_data() {
  std::string text;
  int id = 1;
  for (int word = 1; word <= 6; ++word)
    for (int position = 1; position <= 2; ++position, ++id) {
      const bool b = (word + position) % 2 == 0;
      text += std::to_string(id) + "\t" + (b ? "b" : "a") + "\t" +
              std::to_string(position == 2 ? -1 : id + 1) + "\t" + std::to_string(word) + "\t" +
              std::to_string(position) + "\t" + std::to_string(word % 3);
      for (int pixel = 0; pixel < 128; ++pixel) text += pixel == (b ? 0 : 1) ? "\t1" : "\t0";
      text += "\t\n";
    }
  return text;
}

TEST_F(Verbs, LetterFoldsSplitIntoTrainingAndTest) {
  directory->write("letter.data", letter_data());
  const auto trained = json_of({"train", "letter.data", "--train-folds", "1-2", "-q", "--json", "--lambda",
                                "0.01", "--model", "letter.model"});
  EXPECT_EQ(trained["test"]["hamming"], 0);
  EXPECT_EQ(run({"predict", "letter.model", "letter.data", "--folds", "0"}).out, "3\tba\n6\tab\n");
  EXPECT_EQ(json_of({"eval", "letter.model", "letter.data", "--folds", "0", "--json"})["examples"], 2);
  const Finished all = run({"eval", "letter.model", "letter.data"});
  EXPECT_NE(all.error.find("folds 1-2 trained this model"), std::string::npos);
  EXPECT_EQ(json_of({"certify", "letter.model", "letter.data", "--json"})["certified"], true);
  EXPECT_EQ(run({"certify", "letter.model", "letter.data", "--folds", "0"}).code, 3);
}

TEST_F(Verbs, MultilabelPredictsLabelNumbers) {
  directory->write("labels.svm", "0 1:1\n2 2:1\n0,2 1:1 2:1\n 3:1\n");
  ASSERT_EQ(
      run({"train", "labels.svm", "-q", "--lambda", "0.001", "--gap", "1e-4", "--model", "labels.model"})
          .code,
      0);
  EXPECT_EQ(run({"predict", "labels.model", "labels.svm"}).out, "0\n2\n0,2\n\n");
}

}  // namespace
}  // namespace margrave::test
