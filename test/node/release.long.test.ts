import { expect, it } from "vitest";
import { lastProgram } from "./support/release-recorded.ts";
import { nextProgram, runInTurn } from "./support/releases.ts";

const last = lastProgram();

it("the release check finds Durable Object tables that the last release can't read", async () => {
  const next = { program: await nextProgram(true), isNewer: true };
  await expect(runInTurn([next, { program: last, isNewer: false }])).rejects.toThrow(
    "storage_unavailable",
  );
});

it.each([
  ["renames a column", "ALTER TABLE keys RENAME COLUMN rpm_limit TO limit_a_minute", "to match"],
  ["drops a column", "ALTER TABLE key_terms DROP COLUMN tpm_limit", "to match"],
  ["drops a table", "DROP TABLE webhooks", "to match"],
  ["rejects earlier values", "CREATE UNIQUE INDEX one ON keys (member_id)", "UNIQUE constraint"],
])(
  "the release check detects a migration that %s under the last release",
  async (_what, query, message) => {
    const broken = { ...last, migrations: [{ name: "9999_broken.sql", queries: [query] }] };
    await expect(runInTurn([{ program: broken, isNewer: true }])).rejects.toThrow(message);
  },
);
