import { describe, expect, it } from "vitest";
import { aliasChanges } from "../../scripts/deploy/alias-changes.ts";

describe("a changed alias in deploy:check", () => {
  const kinds = new Map([
    ["smart", "chat"],
    ["embeddings/cheapest", "embeddings"],
    ["chat/b", "chat"],
    ["embed/b", "embeddings"],
  ] as const);
  const changes = (now: object, after: object, isAccepted = false): string[] =>
    aliasChanges({
      now: new Map(Object.entries(now)),
      after: new Map(Object.entries(after)),
      kindOf: (name) => kinds.get(name as "smart"),
      isAccepted,
    }).map(({ level, where }) => `${level} ${where}`);

  it.each([
    ["the same", { "embeddings/cheapest": "a" }, { "embeddings/cheapest": "a" }, []],
    ["a new one", {}, { "embeddings/cheapest": "a" }, []],
    ["chat", { smart: "a" }, { smart: "b" }, ["note smart"]],
    ["no chat any more", { smart: "a" }, {}, ["warning smart"]],
    [
      "other embeddings",
      { "embeddings/cheapest": "a" },
      { "embeddings/cheapest": "b" },
      ["error embeddings/cheapest"],
    ],
    ["no embeddings", { "embeddings/cheapest": "a" }, {}, ["error embeddings/cheapest"]],
    ["a pin of other embeddings", { mine: "a" }, { mine: "embed/b" }, ["error mine"]],
    ["a pin of other chat", { mine: "chat/b" }, { mine: "c" }, ["note mine"]],
    ["a pin that is gone, of nobody knows what", { mine: "a" }, {}, ["error mine"]],
  ])("causes the expected finding: %s", (_name, now, after, expected) => {
    expect(changes(now, after)).toEqual(expected);
    const accepted = expected.map((line) => line.replace("error", "warning"));
    expect(changes(now, after, true)).toEqual(accepted);
  });
});
