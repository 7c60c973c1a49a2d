import { expect, it } from "vitest";
import { parseWorkersAiFailure } from "../../src/models/protocols/workers-ai/failure.ts";

const failureOf = (status: number, text: string) =>
  parseWorkersAiFailure(status, new Headers(), text);

it("the Workers AI adapter recognizes an exhausted allocation, but not a client's text that quotes such an error", () => {
  const words = "you have used up your daily free allocation of 10,000 neurons, please upgrade";
  expect(failureOf(429, words).kind).toBe("disabled");
  expect(failureOf(400, `AiError: ${words}`).kind).toBe("disabled");
  expect(failureOf(400, `Bad input: tools[0].name '${words}'`).kind).toBe("refused");
});

it("the Workers AI adapter removes the request ID at the end of an error, whatever the white space", () => {
  const id = "(01234567-89ab-cdef-0123-456789abcdef)";
  expect(failureOf(400, `5004: Invalid data ${id} \n`).message).toBe("Invalid data");
});

it("the Workers AI adapter reads a long run of white space in linear time", () => {
  expect(failureOf(500, `x${" ".repeat(400_000)}x`)).toMatchObject({
    kind: "retry",
    reason: "500",
  });
});

it("the Workers AI adapter attributes a 403 to Cloudflare only if the response has an error code", () => {
  const want = { kind: "retry", reason: "403", fault: "request" };
  expect(failureOf(403, "<html>403 Forbidden</html>")).toEqual(want);
  expect(failureOf(403, "5018: no").kind).toBe("disabled");
});
