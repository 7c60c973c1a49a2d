import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { Account } from "./support/account.ts";
import { startOperator } from "./support/admin-cli.ts";
import type { Operator } from "./support/admin-cli.ts";
import type { Ran } from "./support/in-process.ts";

const DAY_MS = 86_400_000;
const QUESTION = {
  model: "sandbox/echo",
  messages: [{ role: "user", content: "What is sold? ".repeat(400) }],
};

type Group = { readonly day: string; readonly group: string; readonly bought_micro: number };
const NOTHING: Group = { day: "", group: "", bought_micro: 0 };

const directory = mkdtempSync(path.join(tmpdir(), "turnpike-prices-"));
let operator: Operator;
let account: Account;
beforeAll(async () => {
  operator = await startOperator();
  account = await Account.open(operator.region);
  const answer = await account.chat(QUESTION);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
});
afterAll(async () => {
  await operator.stop();
  removeDirectory(directory);
});

const dayIn = (days: number): string =>
  new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
const timeIn = (ms: number): string => new Date(Date.now() + ms).toISOString();
/** From yesterday to tomorrow, so that a midnight during the test doesn't matter. */
const DAYS = `--from ${dayIn(-1)} --to ${dayIn(1)}`;

let files = 0;
/** Runs a command with a file of these lines. */
function runsWith(command: string, ...lines: readonly string[]): Promise<Ran> {
  const file = path.join(directory, `${files++}.csv`);
  writeFileSync(file, `${lines.join("\n")}\n`);
  return operator.runs(`${command} --file ${file}`);
}
const listed = (): Promise<string> => operator.prints("prices list");

describe("the command turnpike prices", () => {
  const HEAD = "list,item,input,output,percent";
  const [begins, later] = [dayIn(10), dayIn(20)];
  const RAISED = ["partners,sandbox/echo,2.5,2,", "partners,*,,,10"];

  it("posts a price file from stdin, lists the file's prices, and prints differences with propose", async () => {
    const rows = `${HEAD}\n# ours\npartners,sandbox/echo,1,2,\n\npartners,*,,,10\n`;
    const posted = await operator.runs(`prices post --from ${begins}`, rows);
    expect(posted, posted.err).toMatchObject({ code: 0, err: "2 rows posted.\n" });
    const list = await listed();
    expect(list).toMatch(
      new RegExp(
        `^partners +\\* +${begins}T\\S+ +10 +prc_\\w+\\n` +
          `partners +sandbox/echo +${begins}T\\S+ +1 +1 +1 +2 +prc_\\w+$`,
        "m",
      ),
    );
    const proposed = await runsWith(
      `prices propose --from ${later}`,
      HEAD,
      "partners,sandbox/echo,2,2,",
      "partners,*,,,10",
      "partners,sandbox/embed,0.5,,",
    );
    expect(proposed, proposed.err).toMatchObject({ code: 0, err: "" });
    expect(proposed.out).toMatch(/^partners +sandbox\/echo .* dearer +1\/2 +2\/2$/m);
    expect(proposed.out).toMatch(/^partners +\* .* same +\+10 % +\+10 %$/m);
    expect(proposed.out).toMatch(/^partners +sandbox\/embed .* new +0\.5$/m);
    expect(await listed()).toBe(list);
  });

  it("exits with 1 (propose) or 2 (post without --yes) for a price that more than doubles", async () => {
    const list = await listed();
    const proposed = await runsWith(`prices propose --from ${later}`, HEAD, ...RAISED);
    expect(proposed).toMatchObject({
      code: 1,
      err: "sandbox/echo: input is 2.5 times the previous price\n",
    });
    const post = `prices post --from ${later}`;
    const refused = await runsWith(post, HEAD, ...RAISED);
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain("These prices more than double: sandbox/echo.");
    expect(await listed()).toBe(list);
    const posted = await runsWith(`${post} --yes`, HEAD, ...RAISED);
    expect(posted, posted.err).toMatchObject({ code: 0, err: "2 rows posted.\n" });
    const both = await listed();
    expect((await runsWith(`${post} --yes`, HEAD, ...RAISED)).code).toBe(0);
    expect(await listed()).toBe(both);
    const other = await runsWith(`${post} --yes`, HEAD, "partners,sandbox/echo,2.4,2,");
    expect(other).toMatchObject({ code: 1, out: "" });
    expect(other.err).toContain("price_exists");
  });

  it("compares a new price in dollars with a previous price set as a percentage", async () => {
    const list = "slips,openai/gpt-5-nano";
    const first = await runsWith(`prices post --from ${begins}`, HEAD, `${list},,,10`);
    expect(first, first.err).toMatchObject({ code: 0 });
    const dear = await runsWith(`prices propose --from ${later}`, HEAD, `${list},50,400,`);
    expect(dear, dear.out).toMatchObject({ code: 1 });
    expect(dear.err).toMatch(
      /^openai\/gpt-5-nano: cached is \d{4}\.\d times the previous price\n$/,
    );
  });

  it.each([
    ["cached", "1.5,0.11,1.5,2", "cached is 2.2"],
    ["cache_write", "1.5,0.05,3.1,2", "cache_write is 3.1"],
    ["output", "1,0.05,1,4.5", "output is 2.3"],
  ])("reports a large change only for %s", async (name, values, words) => {
    const head = "list,item,input,cached,cache_write,output";
    const list = `caches-${name.replace("_", "-")},sandbox/echo`;
    const first = await runsWith(`prices post --from ${begins}`, head, `${list},1,0.05,1,2`);
    expect(first, first.err).toMatchObject({ code: 0 });
    const slip = await runsWith(`prices propose --from ${later}`, head, `${list},${values}`);
    expect(slip).toMatchObject({
      code: 1,
      err: `sandbox/echo: ${words} times the previous price\n`,
    });
  });

  it("assigns and removes an organization's price list, but rejects an unknown list", async () => {
    const assigned = await operator.runs(`orgs prices ${account.orgId} partners`);
    expect(assigned, assigned.err).toMatchObject({ code: 0 });
    expect(assigned.out).toMatch(/^price list +partners$/m);
    const refused = await operator.runs(`orgs prices ${account.orgId} nobodys`);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("price_list");
    const none = await operator.answers(`orgs prices ${account.orgId} none`);
    expect(none).toMatchObject({ price_list: null });
  });

  it.each([
    ["no content", [], /The input is empty/],
    ["an unknown column", ["item,dollars", "*,1"], /Unknown column 'dollars'/],
    ["no item", [HEAD, "partners,,,,10"], /Line 2 has no item/],
    ["an invalid number", [HEAD, "partners,*,,,much"], /Line 2: percent must be a number/],
    ["too many values", [HEAD, "partners,*,,,10,11"], /Line 2 has too many values/],
  ])("exits with 2 for a file with %s, and posts nothing", async (_what, lines, words) => {
    const ran = await runsWith(`prices post --from ${later}`, ...lines);
    expect(ran, ran.err).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(words);
  });

  it("exits with 2 for a row without a time if --from is missing", async () => {
    const ran = await runsWith("prices propose", HEAD, "partners,*,,,10");
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain('Line 2 has no "from". Add it or give --from.');
  });
});

describe("the command turnpike margin or costs", () => {
  it("prints charges next to providers' costs, by model and organization", async () => {
    expect(await operator.prints(`margin ${DAYS} --by model`)).toMatch(
      /^\d{4}-\d\d-\d\d +sandbox\/echo +1 +0\.\d{6} +0\.\d{6} +-?0\.\d{6} +0$/m,
    );
    const refused = await operator.runs(`margin ${DAYS} --by weather`);
    expect(refused).toMatchObject({ code: 1, out: "" });
  });

  it("stores an imported bill, and exits with 1 only if the bill differs by more than 2 %", async () => {
    const { data } = await operator.answers<{ data: readonly Group[] }>(`margin ${DAYS}`);
    const [{ day, group, bought_micro: bought } = NOTHING] = data;
    expect(bought).toBeGreaterThan(2000);
    const importOf = (micros: number): Promise<Ran> =>
      runsWith("costs import", "provider,day,dollars", `${group},${day},${micros / 1_000_000}`);
    const same = await importOf(bought);
    expect(same, same.err).toMatchObject({ code: 0, err: "" });
    expect(same.out).toMatch(new RegExp(`^${group} +${day} .* 0$`, "m"));
    // The largest difference of 2%, and one micro-credit more.
    const most = Math.floor((bought * 100) / 98);
    expect([(await importOf(most)).code, (await importOf(most + 1)).code]).toEqual([0, 1]);
    const unknown = await runsWith("costs import", "provider,day,dollars", `nobody,${day},1`);
    expect(unknown).toMatchObject({ code: 1 });
    expect((await runsWith("costs import", "provider,day", `nobody,${day}`)).code).toBe(2);
  });
});

// Runs last, because it moves the region's clock.
it("turnpike rerate prints proposed credits, and adds them once with --yes and a confirmed total", async () => {
  const { orgId } = account;
  const span = `--from ${timeIn(-DAY_MS)} --to ${timeIn(1_800_000)}`;
  const slip = `rerate --id slip-1 --model sandbox/echo ${span} --input 0.5 --output 1`;
  const before = await account.balance();
  const dry = await operator.runs(slip);
  expect(dry.code).toBe(0);
  const [, confirmed = ""] =
    /^Nothing was credited\. To credit it, add (--yes --at-most \S+)\.\n$/.exec(dry.err) ?? [];
  expect(confirmed).not.toBe("");
  expect(dry.out).toMatch(/ +1 +0\.\d{6} +would_credit$/m);
  expect(await account.balance()).toBe(before);
  for (const unconfirmed of ["--yes", "--yes --at-most 0.000001"]) {
    const ran = await operator.runs(`${slip} ${unconfirmed}`);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("Nothing was credited. Add --at-most 0.");
  }
  const early = await operator.runs(`${slip} ${confirmed}`);
  expect(early).toMatchObject({ code: 1, out: "" });
  expect(early.err).toContain("two hours ago");
  await operator.restart({ CLOCK_OFFSET_MS: String(3 * 3_600_000) });
  const credit = `${slip} --organization ${orgId} ${confirmed}`;
  const { total_micro: total } = await operator.answers<{ total_micro: number }>(credit);
  expect(total).toBeGreaterThan(0);
  expect(await operator.prints(credit)).toMatch(/ credited$/m);
  expect(await account.balance()).toBe(before + total);
  const again = await operator.runs(slip.replace("slip-1", "slip-2"));
  expect(again.err).toMatch(/^Warning: \S+ has corrections since then: slip-1\. /m);
  expect((await operator.runs(slip)).err).not.toContain("Warning");
});
