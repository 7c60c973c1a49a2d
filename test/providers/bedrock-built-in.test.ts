import { expect, it } from "vitest";
import { parseConfig } from "../../src/shared/config/config.ts";
import {
  buildProviders,
  listActiveProviders,
  findProviderProblems,
} from "../../src/models/providers/registry.ts";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { answerTo } from "./adapter-kit.ts";
import { BEDROCK, NOVA } from "./bedrock-kit.ts";

const BASE = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  REGION: "eu",
};
const TOKEN = { AWS_BEARER_TOKEN_BEDROCK: "ABSKexample" };
const KEY = { AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: "secret" };

function configOf(vars: Record<string, string>) {
  const parsed = parseConfig({ ...BASE, ...vars });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

const host = (region: string) => `https://bedrock-runtime.${region}.amazonaws.com`;
const activeWith = (vars: Record<string, string>) =>
  listActiveProviders(configOf(vars)).filter(({ id }) => id === "bedrock");
const problemsWith = (vars: Record<string, string>) => findProviderProblems(configOf(vars));
/** Returns the URL and the authorization of a request. */
async function requestWith(vars: Record<string, string>) {
  const provider = buildProviders(configOf(vars), BEDROCK).get("bedrock");
  if (provider === undefined) throw new Error("not configured");
  const { requests } = await answerTo(provider, { upstreamId: NOVA }, BEDROCK_CHAT.text.json);
  const [request] = requests;
  return [new URL(request?.url ?? "").origin, request?.headers.get("authorization")];
}

it.each([
  [{}, []],
  [TOKEN, [{ id: "bedrock", regions: ["eu"] }]],
  [KEY, [{ id: "bedrock", regions: ["eu"] }]],
  [{ ...TOKEN, REGION: "us" }, [{ id: "bedrock", regions: ["us"] }]],
])("the Bedrock provider with the variables %j is available as %j", (vars, active) => {
  expect(activeWith(vars)).toEqual(active);
  expect(problemsWith(vars)).toEqual([]);
});

it("the Bedrock provider calls Frankfurt in the EU and Virginia in the US, unless the operator sets another host", async () => {
  const auth = "Bearer ABSKexample";
  expect(await requestWith(TOKEN)).toEqual([host("eu-central-1"), auth]);
  expect(await requestWith({ ...TOKEN, REGION: "us" })).toEqual([host("us-east-1"), auth]);
  const named = { ...TOKEN, AWS_REGION: "eu-west-1" };
  expect(await requestWith(named)).toEqual([host("eu-west-1"), auth]);
  const elsewhere = { ...TOKEN, BEDROCK_BASE_URL: "https://proxy.example.com/" };
  expect(await requestWith(elsewhere)).toEqual(["https://proxy.example.com", auth]);
});

it("the Bedrock provider uses an API key if set, and otherwise signs with an access key for the called region", async () => {
  const region = { AWS_REGION: "eu-north-1" };
  const [, signed] = await requestWith({ ...KEY, ...region });
  expect(signed).toMatch(/Credential=AKIDEXAMPLE\/\d{8}\/eu-north-1\/bedrock\/aws4_request/);
  expect((await requestWith({ ...KEY, ...TOKEN }))[1]).toBe("Bearer ABSKexample");
});

it.each([
  ["eu", "eu-west-2"],
  ["eu", "eu-central-2"],
  ["eu", "us-east-1"],
  ["eu", "eu-central-1.evil.example.com"],
  ["us", "eu-west-1"],
  ["us", "us-gov-west-1"],
  ["us", "ca-central-1"],
])("the Bedrock provider rejects, in %s, the AWS region %s, and calls nothing", (region, aws) => {
  const vars = { ...TOKEN, REGION: region, AWS_REGION: aws };
  expect(problemsWith(vars)).toMatchObject([{ variable: "AWS_REGION" }]);
  expect(activeWith(vars)).toEqual([]);
  expect(problemsWith({ REGION: region, AWS_REGION: aws })).toEqual([]); // not configured at all
});

it.each([
  ["eu", "bedrock-runtime.us-east-1.amazonaws.com"],
  ["eu", "bedrock-runtime.eu-west-2.amazonaws.com."],
  ["eu", "bedrock-runtime.us-west-2.api.aws"],
  ["eu", "bedrock.amazonaws.com"],
  ["us", "vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com"],
])("the Bedrock provider rejects, in %s, the base URL of %s, and calls nothing", (region, at) => {
  const vars = { ...TOKEN, REGION: region, BEDROCK_BASE_URL: `https://${at}` };
  expect(problemsWith(vars)).toMatchObject([{ variable: "BEDROCK_BASE_URL" }]);
  expect(activeWith(vars)).toEqual([]);
});

it.each([
  "bedrock-runtime.eu-west-3.amazonaws.com",
  "vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com",
  "my-proxy-1.eu-north-1.elb.amazonaws.com",
  "amazonaws.com.proxy.test",
])("the Bedrock provider accepts in the EU the base URL of %s", (at) => {
  expect(problemsWith({ ...TOKEN, BEDROCK_BASE_URL: `https://${at}` })).toEqual([]);
});

it("the Bedrock provider reports an incomplete access key and an invalid base URL", () => {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = KEY;
  expect(problemsWith({ AWS_ACCESS_KEY_ID })).toMatchObject([
    { variable: "AWS_SECRET_ACCESS_KEY" },
  ]);
  expect(problemsWith({ AWS_SECRET_ACCESS_KEY })).toMatchObject([
    { variable: "AWS_ACCESS_KEY_ID" },
  ]);
  expect(problemsWith({ ...TOKEN, AWS_ACCESS_KEY_ID })).toEqual([]);
  expect(problemsWith({ ...TOKEN, BEDROCK_BASE_URL: "proxy" })).toMatchObject([
    { variable: "BEDROCK_BASE_URL" },
  ]);
});
