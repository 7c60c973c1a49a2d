import type { Command } from "commander";
import { expect, it } from "vitest";
import { program } from "../../scripts/admin/command-line.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { pagePaths, readPage } from "./pages.ts";

const PAGE = "docs/operate.md";

/** Returns every command that runs something, with its words. */
function leavesOf(command: Command, words = ""): [words: string, command: Command][] {
  return command.commands.flatMap((one) => {
    const own = `${words} ${one.name()}`.trim();
    return one.commands.length > 0
      ? leavesOf(one, own)
      : [[own, one] as [words: string, command: Command]];
  });
}
const PROGRAM = program();
const COMMANDS = new Map(leavesOf(PROGRAM));

const inTicks = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, one = ""]) => one);

/** The rows of "All commands": the commands, the roles that may change by them, and their calls. */
const ROWS = readPage(PAGE)
  .split("\n")
  .filter((line) => line.startsWith("| `") && line.split("|").length === 6)
  .map((line) => {
    const [, commands = "", , who = "", calls = ""] = line.split("|").map((cell) => cell.trim());
    return { commands: inTicks(commands).map(leafOf), who, calls: callsOf(inTicks(calls)) };
  });

/** Returns the command at the start of a line, such as `keys list <org>`. */
function leafOf(line: string): string {
  const words = line.split(" ").filter((word) => /^[a-z]/.test(word));
  const two = words.slice(0, 2).join(" ");
  return COMMANDS.has(two) ? two : (words[0] ?? "");
}

/** Returns the calls in a row's cells. `...` repeats the previous call's text in that place. */
function callsOf(cells: readonly string[]): string[] {
  return cells.map((cell) => {
    const [method = "", path = ""] = cell.includes(" ") ? cell.split(" ") : ["POST", cell];
    const noun = path.startsWith(".../replay") ? "/orgs/:id/webhooks/:webhook_id" : "/orgs/:id";
    return `${method} /admin/v1${path.replace("...", noun).replaceAll(/\{(\w+)\}/g, ":$1")}`;
  });
}

it("docs/operate.md lists every command and every operator API call once", () => {
  const documented = ROWS.flatMap(({ commands }) => commands);
  expect([...new Set(documented)].toSorted()).toEqual([...COMMANDS.keys()].toSorted());
  const calls = new Set(ROWS.flatMap((row) => row.calls));
  const declared = OPERATOR_ROUTES.map(({ method, path }) => `${method} ${path}`);
  expect([...calls].toSorted()).toEqual(declared.toSorted());
});

it("docs/operate.md lists the roles that may run each command", () => {
  const wrong = ROWS.flatMap(({ commands, who, calls }) => {
    const roles = OPERATOR_ROUTES.filter(
      ({ method, path }) => method !== "GET" && calls.includes(`${method} ${path}`),
    ).map((one) => one.roles.filter((role) => role !== "all"));
    const may = new Set(roles.flatMap((own) => (own.length === 0 ? ["all"] : own)));
    const isRight = may.size === 0 ? who === "everyone" : may.has(who);
    return isRight ? [] : [`${commands.join(", ")}: ${[...may].join(", ")}, not ${who}`];
  });
  expect(wrong).toEqual([]);
});

/** Lines of the documents and of the help's examples that call the CLI. */
const CALLED = [
  ...pagePaths().flatMap((page) =>
    [
      ...readPage(page).matchAll(/(?:npm run -s admin --|(?<=^|[`(])admin) ([a-z"-][^`\n|)]*)/gm),
    ].map(([, line = ""]) => ({ at: page, line })),
  ),
  ...[...COMMANDS].flatMap(([words, command]) =>
    examplesOf(command).map((line) => ({ at: words, line })),
  ),
];

function examplesOf(command: Command): string[] {
  let text = "";
  command.configureOutput({ writeOut: (more) => (text += more) });
  command.outputHelp();
  return [...text.matchAll(/^ +npm run -s admin -- (.+)$/gm)].map(([, line = ""]) => line);
}

it("the documentation contains only existing commands with existing flags and all required arguments", () => {
  const wrong = CALLED.flatMap(({ at, line }) => {
    const plain = line.replace(/--(?:local|url) \S+ ?/, "").replace(/^--json /, "");
    if (/^(?:"\$@"|(?:[a-z]+ )?--help)/.test(plain)) return [];
    const command = COMMANDS.get(leafOf(plain));
    if (command === undefined) return [`${at}: there is no ${plain}`];
    const known = new Set([...command.options, ...PROGRAM.options].map(({ long }) => long));
    const flags = [...line.matchAll(/(?<= )--[a-z][a-z-]*/g)].map(([flag]) => flag);
    const isShort = !line.includes(" ", line.indexOf(leafOf(plain)) + leafOf(plain).length);
    const needed = isShort ? [] : command.options.filter(({ mandatory }) => mandatory);
    const missing = needed.map(({ long }) => long ?? "").filter((flag) => !flags.includes(flag));
    const strange = flags.filter((flag) => !known.has(flag) && flag !== "--help");
    return [
      ...missing.map((flag) => `lacks ${flag}`),
      ...strange.map((flag) => `has no ${flag}`),
    ].map((fault) => `${at}: ${line}: ${fault}`);
  });
  expect(CALLED.length).toBeGreaterThan(60);
  expect(wrong).toEqual([]);
});
