import { InvalidArgumentError } from "commander";
import { describe, expect, it } from "vitest";
import { execFileSync } from "node:child_process";
import { microsOfDollarText, refuseSecrets, WrongUsage } from "../../scripts/admin/arguments.ts";
import { program } from "../../scripts/admin/command-line.ts";
import { completionScript, descendants } from "../../scripts/admin/completion-command.ts";
import { adminUrl } from "../../scripts/admin/target.ts";
import { pathOf } from "../../scripts/admin/transport.ts";
import { unsavedSettlements } from "../../scripts/admin/unsaved-settlements.ts";
import { dollars } from "../../scripts/admin/words.ts";
import { textTable } from "../../scripts/table.ts";
import { startProgram } from "./support/program.ts";
import { callAdmin } from "./support/admin-cli.ts";

it("the help of the admin CLI explains every option and argument", () => {
  const unexplained = descendants(program()).flatMap((command) =>
    [...command.options, ...command.registeredArguments]
      .filter(({ description }) => /^(?:\d+ to \d+)?(?:, )?(?:or none)?$/.test(description))
      .map((one) => `${command.name()} ${"flags" in one ? one.flags : one.name()}`),
  );
  expect(unexplained).toEqual([]);
});

const ORG = "0b5f2f5c-0000-4000-8000-000000000000";

it.each([
  ["https://eu.example.com", "https://eu.example.com/admin/v1"],
  ["https://eu.example.com/", "https://eu.example.com/admin/v1"],
  ["https://eu.example.com/admin/v1/", "https://eu.example.com/admin/v1"],
  ["https://example.com/eu", "https://example.com/eu/admin/v1"],
  ["http://localhost:8787", "http://localhost:8787/admin/v1"],
  ["http://[::1]:8787", "http://[::1]:8787/admin/v1"],
])("the admin CLI reads the address %s as %s", (address, expected) => {
  expect(adminUrl(address)).toBe(expected);
});

it.each([
  "eu.example.com",
  "ftp://eu.example.com",
  "http://eu.example.com",
  "http://127.0.0.1.example.com",
  "https://user:password@eu.example.com",
  "https://eu.example.com?a=1",
  "https://eu.example.com/v1",
])("the admin CLI rejects the address %s", (address) => {
  expect(() => adminUrl(address)).toThrow(WrongUsage);
});

it.each([
  ["12.50", 12_500_000],
  ["8.2", 8_200_000],
  ["0.000001", 1],
  ["-0.07", -70_000],
  ["-0", 0],
  ["9007199254.740991", Number.MAX_SAFE_INTEGER],
])("the admin CLI converts %s dollars to %i micro-credits and back", (text, micros) => {
  expect(microsOfDollarText(text)).toBe(micros);
  expect(microsOfDollarText(dollars(micros))).toBe(micros);
});

it.each(["", ".5", "5.", "1e3", "1,5", "1.0000000", "9007199254.740992", "NaN", "+1", "1 "])(
  "the admin CLI rejects the amount %j",
  (text) => {
    expect(() => microsOfDollarText(text)).toThrow(InvalidArgumentError);
  },
);

it("the admin CLI accepts IDs, slugs and free text as arguments, because they aren't secrets", () => {
  const args = [ORG, "a".repeat(32), "key_0VbYLVeiej0Be1V2ivdE8L5o", "--from", "2026-11-21"];
  const free = ["--reference", "0".repeat(64), "--file", `/logs/${"a".repeat(40)}`];
  expect(() => refuseSecrets([...args, ...free], "t".repeat(40))).not.toThrow();
});

it("the admin CLI rejects path segments that would escape the base path", () => {
  for (const segment of ["..", ".", "", "a/b", "a%2fb", "a?b"]) {
    expect(() => pathOf("orgs", segment)).toThrow("not a segment");
  }
});

it("the admin CLI rejects a truncated log line before it posts anything", () => {
  const line = JSON.stringify({
    event: "settlement_unsaved",
    org_id: ORG,
    request_id: "req_1",
    cost_micro: 1,
    generation: {},
  });
  expect(unsavedSettlements(`[eu] ${line}`)).toHaveLength(1);
  expect(() => unsavedSettlements(`${line}\n${line.slice(0, 60)}`)).toThrow(/^Line 2 mentions/);
});

const unsavedLine = (request_id: string): Readonly<Record<string, unknown>> => ({
  event: "settlement_unsaved",
  request_id,
  org_id: "0b5f2f5c-0000-4000-8000-000000000000",
  cost_micro: 1,
  generation: { model: "m" },
});

const [one, two] = [unsavedLine("req_1"), unsavedLine("req_2")];

const text = (value: object): string => JSON.stringify(value);

const other = { event: "other" };

describe("the log reader of turnpike settle", () => {
  it.each([
    ["npm start", `[eu] ${text(other)}\n[eu] ${text(one)}\n[us] ${text(two)}`],
    [
      "wrangler tail --format json",
      [one, two]
        .map((each) => JSON.stringify({ logs: [{ message: [text(each)] }] }, null, 2))
        .join("\n"),
    ],
    [
      "Workers Logs as fields",
      text({
        result: {
          events: { events: [{ source: one, $metadata: { message: text(one) } }, { source: two }] },
        },
      }),
    ],
    ["Workers Logs as text", text([{ source: { message: text(one) } }, { source: text(two) }])],
    [
      "Logpush",
      [
        text({ Outcome: "ok", Logs: [{ Level: "log", Message: [text(other)], TimestampMs: 1 }] }),
        text({
          Outcome: "ok",
          Logs: [one, two].map((each) => ({ Level: "log", Message: [text(each)] })),
        }),
      ].join("\n"),
    ],
  ])("reads unsaved charges from a log of %s", (_name, log) => {
    expect(unsavedSettlements(log).map(({ settlement }) => settlement.request_id)).toEqual([
      "req_1",
      "req_2",
    ]);
  });
});

it("the admin CLI aligns wide characters in a table, and removes control characters", () => {
  expect(textTable([{ title: "a" }, { title: "b", align: "right" }], [["é\u0007", "1"]])).toBe(
    "a   b\n-----\né\ufffd  1",
  );
});

it("the admin CLI prints the release with --version", async () => {
  const started = startProgram(["scripts/admin.ts", "--version"]);
  expect(await started.ended).toBe(0);
  expect(started.output()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

it("the admin CLI prints an error as JSON with --json", async () => {
  const args = ["orgs", "list", "--url", "http://127.0.0.1:9", "--json"];
  const started = startProgram(["scripts/admin.ts", ...args], { TURNPIKE_ADMIN_TOKEN: "token" });
  expect(await started.ended).toBe(1);
  expect(JSON.parse(started.output())).toMatchObject({
    error: { message: expect.any(String), maybe_done: false },
  });
});

/** Returns the completions that bash finds for the last of these words. */
function completed(...words: readonly string[]): readonly string[] {
  const args = ["admin", ...words].map((word) => `'${word}'`).join(" ");
  const script = `${completionScript(program(), false)}
COMP_WORDS=(${args}); COMP_CWORD=${words.length}; _turnpike_admin
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const printed = execFileSync("bash", ["-c", script]).toString();
  return printed.split("\n").filter((word) => word !== "");
}

describe("the shell completion of the operator's CLI", () => {
  it.each<[readonly string[], readonly string[]]>([
    [["org"], ["orgs"]],
    [
      ["orgs", "res"],
      ["resume", "restore"],
    ],
    [
      ["--local", ""],
      ["eu", "us"],
    ],
    [["--local", "eu", "keys", "revoke", "example", "--y"], ["--yes"]],
    [["members", "add", "example", "a@example.com", "--role", "bil"], ["billing"]],
    [["credits", "add", "example", "--reference", ""], []],
    [["completion", "z"], ["zsh"]],
  ])("completes %j to %j", (words, expected) => {
    expect([...completed(...words)].toSorted()).toEqual([...expected].toSorted());
  });

  it("supports bash and zsh", async () => {
    const printed = await callAdmin(["completion", "bash"]);
    expect(printed).toMatchObject({ code: 0, err: "" });
    expect(printed.out).toBe(completionScript(program(), false));
    const zsh = await callAdmin(["completion", "zsh"]);
    expect(zsh.out).toContain("bashcompinit");
  });
});
