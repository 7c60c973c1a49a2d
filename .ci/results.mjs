// node .ci/results.mjs failed FILE.json: prints the files with a failed test, one relative path per line.
// node .ci/results.mjs sum DIRECTORY RUN...: prints every failure and, as the last line, "N passed, N failed". Exits
// with 1 if a test failed. `.ci/run` runs each failed file a second time. A test that passes then counts as passed,
// and the output names it: a slow machine doesn't fail the build, and a fault does.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const [, , what, ...given] = process.argv;
const read = (file) => JSON.parse(readFileSync(file, "utf8"));

if (what === "failed") {
  const files = read(given[0]).testResults.filter(({ status }) => status === "failed");
  for (const { name } of files) console.log(path.relative(process.cwd(), name));
} else {
  sum(...given);
}

function sum(directory, ...runs) {
  let passed = 0;
  let failed = 0;
  for (const run of runs) {
    const found = resultOf(directory, run);
    passed += found.passed;
    failed += found.failed;
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** What a run found: of each file its last result. */
function resultOf(directory, run) {
  const first = read(`${directory}/${run}.json`);
  const second = `${directory}/${run}-again.json`;
  const again = existsSync(second) ? read(second).testResults : [];
  const last = new Map(first.testResults.map((file) => [file.name, file]));
  for (const file of again) last.set(file.name, file);
  const ended = readFileSync(`${directory}/${run}.ended`, "utf8").trim();
  let passed = 0;
  let failed = 0;
  for (const file of last.values()) {
    const bad = file.assertionResults.filter(({ status }) => status === "failed");
    passed += file.assertionResults.filter(({ status }) => status === "passed").length;
    failed += bad.length;
    if (file.status === "failed" && bad.length === 0) failed += 1;
    if (file.status === "failed" && file.message) {
      console.log(`\nFAILED ${run}: ${file.name}\n${file.message}`);
    }
    for (const test of bad) tell(`FAILED ${run}`, file, test);
  }
  for (const { name } of again) {
    const before = first.testResults.find((file) => file.name === name);
    for (const test of before?.assertionResults ?? []) {
      if (test.status === "failed" && last.get(name).status !== "failed") {
        tell(`PASSED THE SECOND TIME ${run}`, before, test);
      }
    }
  }
  // A file that doesn't load, or an error outside a test, fails the run although no test failed.
  if (failed === 0 && ended !== "0") {
    failed = 1;
    console.log(
      `\nFAILED ${run}: no test failed, but vitest ended with ${ended}: look for "Unhandled" above`,
    );
  }
  return { passed, failed };
}

function tell(verdict, file, test) {
  const message = test.failureMessages.join("\n").slice(0, 4_000);
  console.log(`\n${verdict}: ${file.name} > ${test.fullName}\n${message}`);
}
