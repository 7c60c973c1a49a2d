import { exports } from "cloudflare:workers";
import { beforeAll, expect, it } from "vitest";
import { openAccount } from "../contract/client.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

function sendRequest(origin: string, path: string, method = "GET"): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, origin: "https://page.test" };
  const request = new Request(origin + path, { method, headers, redirect: "manual" });
  return exports.default.fetch(request);
}

const PUBLIC = [
  "http://eu.test",
  "http://127.0.0.1.eu.test",
  "http://localhost.eu.test",
  "http://local.eu.test",
  "http://11.0.0.1",
  "http://172.32.0.1",
  "http://192.169.0.1",
  "http://[2606:4700::1]",
];

it.each([
  ["GET", "/v1/models"],
  ["POST", "/v1/chat/completions"],
  ["POST", "/v1/messages"],
  ["GET", "/admin/v1/orgs"],
  ["POST", "/console/api/login"],
  ["OPTIONS", "/v1/keys"],
  ["GET", "/healthz"],
])("the Worker returns 400 for %s %s over plain HTTP, without a redirect", async (method, path) => {
  for (const origin of PUBLIC) {
    const response = await sendRequest(origin, path, method);
    expect([response.status, response.headers.get("location")]).toEqual([400, null]);
    expect(await response.text()).toContain("requires https");
  }
});

it.each([
  "http://localhost:8787",
  "http://eu.localhost",
  "http://127.0.0.1:8787",
  "http://[::1]:8787",
  "http://gateway:8787",
  "http://host.docker.internal:8787",
  "http://laptop.local",
  "http://10.1.2.3:8787",
  "http://172.17.0.1:8787",
  "http://192.168.1.9:8787",
  "http://[fd00::1]:8787",
  "https://eu.test",
])("the Worker serves the local or HTTPS address %s", async (origin) => {
  expect((await sendRequest(origin, "/v1/models")).status).toBe(200);
});
