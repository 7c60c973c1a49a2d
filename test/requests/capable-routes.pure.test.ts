import { describe, expect, it } from "vitest";
import type { Model, Route, RouteLimits } from "../../src/models/catalog/model.ts";
import { listEmbeddingRouteNeeds } from "../../src/models/core/embeddings.ts";
import { filterRoutesByNeeds } from "../../src/models/core/input-kind.ts";
import { findCapableRoutes } from "../../src/models/requests/bound-request.ts";
import type { ChatBody } from "../../src/models/core/core-request.ts";
import { computeOutputCap } from "../../src/models/requests/hold-bounds.ts";
import { MODEL, ROUTE } from "./run-fixture.ts";

const TEXT: ChatBody = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const IMAGE: ChatBody = {
  model: "m",
  messages: [
    { role: "user", content: [{ type: "image_url", image_url: { url: "https://images.test/a" } }] },
  ],
};
const TOOLS: ChatBody = { ...TEXT, tools: [{ type: "function", function: { name: "f" } }] };
const TOOLS_BEFORE: ChatBody = {
  ...TEXT,
  messages: [...TEXT.messages, { role: "tool", content: "7", tool_call_id: "call_1" }],
};

/** Returns a model with a route for each of these limits, named a, b, c and so on. */
function modelOf(...limits: (RouteLimits | undefined)[]): Model {
  const routes = limits.map((each, at): Route => {
    const { provider, price, dataRegion } = ROUTE;
    const upstreamId = "abcdef".charAt(at);
    return each === undefined
      ? { provider, price, dataRegion, upstreamId }
      : { provider, price, dataRegion, upstreamId, limits: each };
  });
  return { ...MODEL, context: 1000, routes };
}

/** Returns the number of routes for an embeddings request, or its failure. */
function embedders(model: Model, dimensions?: number): unknown {
  const body = { model: "m", input: "a", ...(dimensions !== undefined && { dimensions }) };
  const routes = filterRoutesByNeeds(listEmbeddingRouteNeeds(body), model);
  return routes.ok ? routes.value.length : routes.failure;
}

type RouteOptions = {
  readonly choices?: number;
  readonly estimate?: number;
  readonly least?: number;
};

/** Returns the names of the routes for a chat request as one text, or its failure. */
function able(model: Model, chat: ChatBody, options: RouteOptions = {}): string {
  const { choices = 1, estimate = 10, least = 64 } = options;
  const prompt = { bound: estimate, estimate, likely: estimate };
  const routes = findCapableRoutes(model, {
    chat: { ...chat, n: choices },
    prompt,
    cap: { whole: 100, least, choices, isAsked: true },
  });
  if (routes.ok) return routes.value.map((route) => route.upstreamId).join("");
  return routes.failure.kind === "invalid_request" ? `400 ${routes.failure.param}` : "?";
}

describe("the choice of routes for a chat request", () => {
  it("includes routes that support the requested choices, images and tools, in order of preference", () => {
    const model = modelOf({ choices: 1 }, undefined, { lacks: ["vision"] }, { lacks: ["tools"] });
    expect(able(model, TEXT)).toBe("abcd");
    expect(able(model, TEXT, { choices: 2 })).toBe("bcd");
    expect(able(model, IMAGE)).toBe("abd");
    expect(able(model, TOOLS)).toBe("abc");
    expect(able(model, TOOLS_BEFORE)).toBe("abc");
    expect(able(model, { ...TEXT, tools: [] })).toBe("abcd");
    expect(able(model, { ...IMAGE, tools: TOOLS.tools }, { choices: 2 })).toBe("b");
  });

  it("includes no route if none supports a field, so that the request returns 400 with the field as param", () => {
    expect(able(modelOf({ choices: 1 }, { choices: 3 }), TEXT, { choices: 4 })).toBe("400 n");
    expect(able(modelOf({ lacks: ["vision"] }), IMAGE)).toBe("400 messages");
    expect(able(modelOf({ lacks: ["tools"] }), TOOLS)).toBe("400 tools");
    expect(able(modelOf({ choices: 1 }, { lacks: ["vision"] }), IMAGE, { choices: 2 })).toBe(
      "400 messages",
    );
    expect(able(modelOf({ maxOutput: 63 }), TEXT)).toBe("400 max_tokens");
  });

  it("includes no route of a model that can't call tools, so that the request returns 400", () => {
    const mute: Model = { ...modelOf(undefined, { choices: 1 }), abilities: ["vision"] };
    expect([able(mute, TOOLS), able(mute, TOOLS_BEFORE), able(mute, TEXT)]).toEqual([
      "400 tools",
      "400 tools",
      "ab",
    ]);
  });

  it("excludes routes whose context window is too small, unless none is large enough", () => {
    const model = modelOf({ context: 200 }, undefined, { context: 500 });
    expect(able(model, TEXT, { estimate: 136 })).toBe("abc");
    expect(able(model, TEXT, { estimate: 137 })).toBe("bc");
    expect(able(model, TEXT, { estimate: 437 })).toBe("b");
    expect(able(model, TEXT, { estimate: 5000 })).toBe("b");
    expect(able(modelOf({ context: 200 }, { context: 500 }), TEXT, { estimate: 900 })).toBe("b");
    expect(able(modelOf({ context: 200 }), TEXT, { estimate: 900 })).toBe("a");
  });

  it("includes only routes that can change the dimensions if the field 'dimensions' is set", () => {
    const limits: RouteLimits = { lacks: ["dimensions"] };
    expect([
      embedders(modelOf(limits, undefined)),
      embedders(modelOf(limits, undefined), 64),
    ]).toEqual([2, 1]);
    expect(embedders(modelOf(limits), 64)).toMatchObject({
      kind: "invalid_request",
      param: "dimensions",
    });
  });
});

/** Returns the number of routes for these embeddings, or the failure. */
function routesFor(model: Model, input: string | string[] | number[] | number[][]): unknown {
  const routes = filterRoutesByNeeds(listEmbeddingRouteNeeds({ model: "m", input }), model);
  return routes.ok ? routes.value.length : routes.failure;
}

it("the routes selected for an embeddings request accept the request's number of inputs", () => {
  const few: Model = modelOf({ inputs: 2 });
  const either: Model = modelOf({ inputs: 2 }, undefined);
  const refused = { kind: "invalid_request", param: "input" };
  expect(routesFor(few, ["a", "b", "c"])).toMatchObject(refused);
  expect(routesFor(few, [[1], [2], [3]])).toMatchObject(refused);
  expect([["a", "b"], "abc", [1, 2, 3]].map((input) => routesFor(few, input))).toEqual([1, 1, 1]);
  expect([["a", "b", "c"], ["a"]].map((input) => routesFor(either, input))).toEqual([1, 2]);
});

describe("a chat request with thinking", () => {
  const prompt = { bound: 10, estimate: 10, likely: 10 };
  const least = (thinks: boolean, cap: number | null, model: Partial<Model> = {}) =>
    computeOutputCap({ ...MODEL, thinkingFloor: 1024, ...model }, prompt, {
      cap,
      choices: 1,
      defaultCap: 500,
      thinks,
    });

  it("gets a minimum output above the model's minimum for thinking, up to the requested cap", () => {
    expect(least(true, 4000)).toMatchObject({ whole: 4000, least: 1025 });
    expect(least(true, 300)).toMatchObject({ whole: 300, least: 300 });
    expect(least(true, null)).toMatchObject({ whole: 1025, least: 1025 });
    expect(least(true, 4000, { minOutput: 2000 })).toMatchObject({ least: 2000 });
    expect(least(false, 4000)).toMatchObject({ whole: 4000, least: 64 });
    expect(
      computeOutputCap(MODEL, prompt, { cap: 90, choices: 1, defaultCap: 9, thinks: true }),
    ).toEqual({
      whole: 90,
      least: 64,
      choices: 1,
      isAsked: true,
    });
  });
});
