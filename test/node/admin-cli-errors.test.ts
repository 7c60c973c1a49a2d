import { expect, it } from "vitest";
import { startProgram } from "./support/program.ts";

it("the admin CLI prints the release with --version", async () => {
  const program = startProgram(["scripts/admin.ts", "--version"]);
  expect(await program.ended).toBe(0);
  expect(program.output()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

it("the admin CLI prints an error as JSON with --json", async () => {
  const given = ["orgs", "list", "--url", "http://127.0.0.1:9", "--json"];
  const program = startProgram(["scripts/admin.ts", ...given], { TURNPIKE_ADMIN_TOKEN: "token" });
  expect(await program.ended).toBe(1);
  expect(JSON.parse(program.output())).toMatchObject({
    error: { message: expect.any(String), maybe_done: false },
  });
});
