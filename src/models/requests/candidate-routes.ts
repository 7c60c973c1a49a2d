import type { Model, Route } from "../catalog/model.ts";
import { getPriceForPrompt } from "../catalog/price.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type { SkippedRoute } from "../../shared/generation.ts";
import type { Price } from "../../shared/usage.ts";
import type { MaxPrice, RoutePreferences, RouteSortOrder } from "../core/gateway-fields.ts";
import type { PromptSize } from "../core/prompt-size.ts";
import { formatRouteName } from "../routing/route-health.ts";
import type { MedianSpeed } from "../routing/route-times.ts";
import { getHighestInputPrice } from "./hold-bounds.ts";
import type { OutputCap } from "./hold-bounds.ts";

/** The facts by which routes are chosen and ordered. */
export type RouteChoiceFacts = {
  readonly preferences: RoutePreferences;
  readonly prompt: PromptSize;
  readonly cap: OutputCap | null;
  /** IDs of all providers, including those without a configured secret. */
  readonly providerIds: ReadonlySet<string>;
  readonly speedOf: (route: string) => MedianSpeed;
};

type RouteCondition = {
  readonly param: string;
  readonly problem: string;
  readonly why: SkippedRoute["why"];
  readonly allows: (route: Route) => boolean;
};

/**
 * Returns the routes that meet all rules, in order. Fails with 400 and the `param` of the rule that
 * excludes the last route.
 */
function routesMeetingRules(
  { id }: Pick<Model, "id">,
  routes: readonly Route[],
  rules: readonly RouteCondition[],
): Result<readonly Route[]> {
  let remaining = routes;
  for (const { param, problem, allows } of rules) {
    remaining = remaining.filter(allows);
    if (remaining.length === 0) {
      return invalid(
        `The routing preferences exclude every provider of the model '${id}': ${problem}.`,
        param,
      );
    }
  }
  return success(remaining);
}

/** Returns the routes that meet the request's preferences, in the preferred order. */
export function listPreferredRoutes(
  model: Pick<Model, "id">,
  routes: readonly Route[],
  choice: RouteChoiceFacts | null,
): Result<readonly Route[]> {
  if (choice === null) return success(routes);
  const unknown = refuseUnknownProvider(choice);
  if (unknown !== null) return unknown;
  const allowed = routesMeetingRules(model, routes, preferenceRules(choice));
  return allowed.ok ? success(orderRoutes(allowed.value, choice)) : allowed;
}

const PREFERENCE_LISTS = ["order", "only", "ignore"] as const;

function refuseUnknownProvider({
  preferences,
  providerIds,
}: RouteChoiceFacts): ReturnType<typeof invalid> | null {
  for (const list of PREFERENCE_LISTS) {
    const names = preferences[list] ?? [];
    const at = names.findIndex((name) => !providerIds.has(name));
    if (at === -1) continue;
    const param = `${preferences.field}.${list}[${at}]`;
    return invalid(`${param} is not a known provider: '${names[at] ?? ""}'.`, param);
  }
  return null;
}

export function getSkipReason(route: Route, choice: RouteChoiceFacts | null): SkippedRoute["why"] {
  if (choice === null) return "parameter";
  const rule = preferenceRules(choice).find(({ allows }) => !allows(route));
  if (rule !== undefined) return rule.why;
  return choice.preferences.allowsFallbacks ? "parameter" : "preference";
}

function preferenceRules({ preferences, prompt }: RouteChoiceFacts): RouteCondition[] {
  const { field, order, only, ignore, allowsFallbacks, maxPrice } = preferences;
  const rules: RouteCondition[] = [
    {
      param: `${field}.only`,
      problem: "'only' lists none of them",
      why: "preference",
      allows: ({ provider }) => only?.includes(provider) ?? true,
    },
    {
      param: "provider.ignore",
      problem: "'ignore' lists all of them",
      why: "preference",
      allows: ({ provider }) => !ignore.includes(provider),
    },
  ];
  if (!allowsFallbacks && order.length > 0) {
    rules.push({
      param: "provider.order",
      problem: "'order' lists none of them, and 'allow_fallbacks' is false",
      why: "preference",
      allows: ({ provider }) => order.includes(provider),
    });
  }
  if (maxPrice !== null) {
    rules.push({
      param: "provider.max_price",
      problem: "all cost more than 'max_price'",
      why: "max_price",
      allows: (route) => isWithinMaxPrice(route, prompt, maxPrice),
    });
  }
  return rules;
}

function isWithinMaxPrice(route: Route, prompt: PromptSize, maxPrice: MaxPrice): boolean {
  return [route.price, getPriceForPrompt(route, prompt.bound)].every((price) => {
    const { input, output, request } = maxPrice;
    return (
      getHighestInputPrice(price, prompt) <= (input ?? Infinity) &&
      price.output <= (output ?? Infinity) &&
      (price.units?.request ?? 0) <= (request ?? Infinity) &&
      Object.keys(price.units ?? {}).every((unit) => unit === "request")
    );
  });
}

function orderRoutes(routes: readonly Route[], choice: RouteChoiceFacts): readonly Route[] {
  const { order, allowsFallbacks, sort } = choice.preferences;
  const sorted = sort === null ? routes : sortRoutes(sort, routes, choice);
  const rank = ({ provider }: Route): number => {
    const at = order.indexOf(provider);
    return at === -1 ? order.length : at;
  };
  const ordered = order.length === 0 ? sorted : sorted.toSorted((a, b) => rank(a) - rank(b));
  return allowsFallbacks || order.length > 0 ? ordered : ordered.slice(0, 1);
}

function sortRoutes(
  sort: RouteSortOrder,
  routes: readonly Route[],
  { prompt, cap, speedOf }: RouteChoiceFacts,
): readonly Route[] {
  const costOf = (route: Route): number => {
    const price: Price = getPriceForPrompt(route, prompt.bound);
    return prompt.likely * price.input + (cap?.whole ?? 0) * price.output;
  };
  const sortKeyOf = (route: Route): number => {
    if (sort === "price") return costOf(route);
    const speed = speedOf(formatRouteName(route));
    if (sort === "latency") return speed.latencyMs ?? Infinity;
    return speed.tokensPerSecond === null ? Infinity : -speed.tokensPerSecond;
  };
  const ranked = routes.map((route) => ({ route, sortKey: sortKeyOf(route) }));
  ranked.sort((a, b) => (a.sortKey === b.sortKey ? 0 : a.sortKey - b.sortKey));
  return ranked.map(({ route }) => route);
}
