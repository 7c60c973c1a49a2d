import { expect, it } from "vitest";
import {
  parseForwardedResponse,
  parseForwardedRequest,
} from "../../src/accounts/keys/forward-format.ts";

const ANSWER = {
  ok: true,
  status: 200,
  headers: { "content-type": "application/json" },
  body: "{}",
};
const REQUEST = {
  method: "GET",
  path: "/v1/users",
  query: "?limit=1",
  headers: { "content-type": "application/json", "x-other": "dropped" },
  body: null,
  caller_key_hash: "0".repeat(64),
};

it("a forwarded request and its response keep only the allowed headers", () => {
  expect(parseForwardedResponse(ANSWER)).toMatchObject(ANSWER);
  expect(parseForwardedRequest(REQUEST)).toMatchObject({
    query: "?limit=1",
    headers: { "content-type": "application/json" },
    credential: { keyHash: REQUEST.caller_key_hash },
  });
});

it.each([{ "": "a" }, { "a b": "c" }, { allow: "GET\r\nx: y" }, { allow: "\u4e16" }])(
  "a forwarded response with invalid headers is rejected: %j",
  (headers) => {
    expect(parseForwardedResponse({ ...ANSWER, headers })).toBeNull();
    expect(parseForwardedRequest({ ...REQUEST, headers })).toBeNull();
  },
);

it.each([204, 205, 304])(
  "a forwarded response with the status %d must not have a body",
  (status) => {
    expect(parseForwardedResponse({ ...ANSWER, status })).toBeNull();
    expect(parseForwardedResponse({ ...ANSWER, status, body: "" })).toMatchObject({ status });
  },
);
