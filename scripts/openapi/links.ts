import { OPERATIONS } from "./operations.ts";
import type { Operation } from "./operation.ts";
import type { Json } from "./schemas.ts";

/** Returns the operation ID, such as `get_keys_id`. */
export function operationIdOf({ method, path: at }: Operation): string {
  const words = at
    .replace(/^\//, "")
    .split("/")
    .filter((word) => word !== "v1");
  const name = words.map((word) => word.replaceAll(/[{}]/g, "").replaceAll("-", "_")).join("_");
  return `${method}_${name}`;
}

/** JSON pointers to a new object's ID in responses, for paths below it. */
const NAMED: Readonly<Record<string, string>> = {
  external_id: "/external_id",
  "POST /admin/v1/orgs": "/organization/id",
};
/** The receipt of a paid request. */
const RECEIPT = "/v1/generations/{id}";

/** Returns the `links` of an operation's success, which lead to the created object. */
export function linksOf(operation: Operation): Json {
  const { method, path, isPaid } = operation;
  if (method !== "post") return {};
  const receipt = OPERATIONS.filter((one) => isPaid && one.path === RECEIPT);
  const below = OPERATIONS.filter((one) => {
    const rest = one.path.startsWith(`${path}/`) ? one.path.slice(path.length + 1) : "";
    return /^\{\w+\}(?:\/[a-z-]+)?$/.test(rest);
  });
  const receipts = linksTo(receipt, () => ({ id: "$response.header.x-request-id" }));
  const made = linksTo(below, (one) => {
    const [, last = ""] = /^\/\{(\w+)\}/.exec(one.path.slice(path.length)) ?? [];
    const given = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [
      name,
      `$request.path.${name}`,
    ]);
    const at = NAMED[operation.name] ?? NAMED[last] ?? "/id";
    return { ...Object.fromEntries(given), [last]: `$response.body#${at}` };
  });
  return { ...receipts, ...made };
}

function linksTo(
  operations: readonly Operation[],
  parameters: (operation: Operation) => Readonly<Record<string, string>>,
): Json {
  const links = operations.map((one) => {
    const operationId = operationIdOf(one);
    return [
      operationId,
      { operationId, parameters: parameters(one), description: `${one.summary}.` },
    ];
  });
  return Object.fromEntries(links) as Json;
}
