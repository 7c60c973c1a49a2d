import { expect, it, vi } from "vitest";
import { diagnose } from "../../scripts/provider-check/diagnosis.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import { listHostAddresses } from "../../src/models/providers/openai-hosts.ts";

const KEY = "sk-the-operators-own-key";
const ELSEWHERE = {
  error: {
    message:
      "Attempted to access resource with incorrect regional hostname. Please make your request to us.api.openai.com",
    code: "incorrect_hostname",
  },
};

/** Returns the diagnosis of an OpenAI key in the EU that only these hosts accept. */
async function diagnoseKey(
  vars: Readonly<Record<string, string>>,
  acceptingHosts: readonly string[],
  refusal: { readonly status: number; readonly body?: object } | Error = { status: 401 },
) {
  const parsed = parseConfig({
    REGION: "eu",
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
    OPENAI_API_KEY: KEY,
    ...vars,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const urls: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    expect(request.headers.get("authorization")).toBe(`Bearer ${KEY}`);
    urls.push(request.url);
    if (acceptingHosts.includes(new URL(request.url).host)) return Response.json({ data: [] });
    if (refusal instanceof Error) throw refusal;
    return Response.json(refusal.body ?? {}, { status: refusal.status });
  });
  const { key, places } = listHostAddresses("openai", parsed.config) ?? { key: "", places: [] };
  const diagnosis = await diagnose(key, places);
  expect(JSON.stringify(diagnosis)).not.toContain(KEY);
  return { diagnosis, urls };
}

const RESIDENCY = { OPENAI_RESIDENCY: "on" };

it.each([
  ["host", "an ordinary key at a residency host", RESIDENCY, ["api.openai.com"]],
  ["host", "a key of a European project at the usual host", {}, ["eu.api.openai.com"]],
  ["region", "a key of an American project in the EU", RESIDENCY, ["us.api.openai.com"]],
  ["key", "a key that no host accepts", RESIDENCY, []],
] as const)(
  "the diagnosis of a rejected key reports a wrong %s for %s",
  async (expected, _name, vars, acceptingHosts) => {
    const { diagnosis } = await diagnoseKey(vars, acceptingHosts);
    expect(diagnosis?.wrong).toBe(expected);
    for (const host of acceptingHosts) expect(diagnosis?.say).toContain(host);
  },
);

it("the diagnosis of a rejected key reports a wrong region, without further calls, if the response names another region's host", async () => {
  const { diagnosis, urls } = await diagnoseKey(RESIDENCY, [], { status: 401, body: ELSEWHERE });
  expect(diagnosis).toMatchObject({ wrong: "region" });
  expect(diagnosis?.say).toContain("us.api.openai.com");
  expect(urls).toEqual(["https://eu.api.openai.com/v1/models"]);
});

it("the diagnosis of a rejected key reports a wrong account if no host accepts the key and the called host returns no 401", async () => {
  expect((await diagnoseKey({}, [], { status: 403 })).diagnosis).toMatchObject({
    wrong: "account",
  });
});

it("the diagnosis of a rejected key reports a wrong host if nothing responds", async () => {
  expect((await diagnoseKey({}, [], new Error("no such name"))).diagnosis).toMatchObject({
    wrong: "host",
  });
});

it("the diagnosis of a rejected key reports nothing if the called host accepts the key", async () => {
  expect((await diagnoseKey({}, ["api.openai.com"])).diagnosis).toBeNull();
});

it("the diagnosis of a rejected key sends the key to no other host if the operator set a base URL", async () => {
  const { diagnosis, urls } = await diagnoseKey({ OPENAI_BASE_URL: "https://proxy.test/v1" }, []);
  expect(urls).toEqual(["https://proxy.test/v1/models"]);
  expect(diagnosis).toMatchObject({ wrong: "key" });
});
