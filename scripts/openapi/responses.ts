import { dialectHeaders, documentedFailures } from "./failures.ts";
import { COST, OF_KEY, RECEIPT, RESPONSE_HEADERS } from "./headers.ts";
import { linksOf } from "./links.ts";
import type { Operation } from "./operation.ts";
import type { Json } from "./schemas.ts";

/** One possible response of an operation. */
type PossibleResponse = {
  readonly status: number;
  readonly description: string;
  readonly type: string;
  readonly schema: Json;
  readonly always: readonly string[];
  readonly some: readonly string[];
};

const STREAM_DESCRIPTION =
  "Server-sent events: the schema is of each event's `data`; OpenAI's streams end with the data `[DONE]`.";

/** The components of an operation's responses. */
type Parts = {
  readonly of: (status: number) => Json;
  readonly events: Json | null;
  readonly error: Json;
  readonly messagesError: Json;
  readonly refusals: SharedErrors;
};

/** Error responses that operations share, as `components.responses`. */
export class SharedErrors {
  readonly components: Json = {};
  readonly #names = new Map<string, string>();

  /** Returns a reference to the response. Its name has the status and a number. */
  shared(status: number, response: Json): Json {
    const text = JSON.stringify([status, response]);
    const before = Object.keys(this.components).filter((name) =>
      name.startsWith(`Refusal${status}`),
    );
    const name = this.#names.get(text) ?? `Refusal${status}_${before.length + 1}`;
    this.#names.set(text, name);
    this.components[name] = response;
    return { $ref: `#/components/responses/${name}` };
  }
}

/**
 * Returns the `responses` of an operation: every status with all its headers, media types and
 * bodies.
 */
export function responsesOf(operation: Operation, parts: Parts, answer: unknown): Json {
  const possible = [...successes(operation, parts), ...failures(operation, parts)];
  const responses: Json = {};
  for (const status of [...new Set(possible.map((one) => one.status))].toSorted((a, b) => a - b)) {
    const all = possible.filter((one) => one.status === status);
    const isSuccess = status < 300;
    const links = isSuccess ? linksOf(operation) : {};
    const response = {
      description: [...new Set(all.map(({ description }) => description))].join(
        isSuccess ? " " : ", ",
      ),
      headers: headersOf(all),
      content: contentOf(all, isSuccess ? answer : undefined),
      ...(Object.keys(links).length > 0 && { links }),
    };
    responses[status] = isSuccess ? response : parts.refusals.shared(status, response);
  }
  return responses;
}

/**
 * Returns the headers of responses below `/v1` that every key gets, and of those that only some
 * get.
 */
function keyHeaders({ path, isForMerchants }: Operation): {
  readonly always: string[];
  readonly some: string[];
} {
  if (!path.startsWith("/v1/")) return { always: [], some: [] };
  const own = dialectHeaders(path);
  if (isForMerchants === true) return { always: [], some: [...OF_KEY.always, ...OF_KEY.some] };
  return { always: [...OF_KEY.always, ...own.always], some: [...OF_KEY.some, ...own.some] };
}

function successes(operation: Operation, parts: Parts): PossibleResponse[] {
  const { isPaid, summary } = operation;
  const key = keyHeaders(operation);
  const always = [
    "x-request-id",
    ...key.always,
    ...(operation.hasLocation === true ? ["location"] : []),
    ...(operation.files?.includes("text/csv") === true ? ["content-disposition"] : []),
  ];
  const receipt = isPaid ? RECEIPT : { always: [], some: [] };
  const some = [...key.some, ...receipt.some];
  const { files = ["application/json"] } = operation;
  const whole = Object.keys(operation.answers).flatMap((text) => {
    const status = Number(text);
    return files.map((type): PossibleResponse => ({
      status,
      description: `${summary}.`,
      type,
      schema: parts.of(status),
      always: [...always, ...receipt.always, ...(isPaid ? [COST] : [])],
      some,
    }));
  });
  if (parts.events === null) return whole;
  return [
    ...whole,
    {
      status: 200,
      description: STREAM_DESCRIPTION,
      type: "text/event-stream",
      schema: parts.events,
      always: [...always, ...receipt.always],
      some,
    },
  ];
}

function failures(operation: Operation, parts: Parts): PossibleResponse[] {
  const { path, errors, isPaid } = operation;
  const key = keyHeaders(operation);
  const bodies = {
    openai: parts.error,
    messages: parts.messagesError,
    stream: parts.events ?? {},
  };
  return documentedFailures(path, errors, isPaid).map(({ anchor, status, headers, shape }) => {
    const isStream = shape === "stream";
    return {
      status,
      description: isStream ? STREAM_DESCRIPTION : `\`${anchor}\``,
      type: isStream ? "text/event-stream" : "application/json",
      schema: bodies[shape],
      always: ["x-request-id", ...headers],
      some: [...key.always, ...key.some],
    };
  });
}

function headersOf(all: readonly PossibleResponse[]): Json {
  const names = new Set(all.flatMap(({ always, some }) => [...always, ...some]));
  const entries = [...names].map((name) => {
    if (RESPONSE_HEADERS[name] === undefined) {
      throw new Error(`scripts/openapi doesn't describe ${name}`);
    }
    const isAlways = all.every(({ always }) => always.includes(name));
    return [name, { $ref: headerRef(name, isAlways) }];
  });
  return Object.fromEntries(entries) as Json;
}

/** Required headers are separate components, because `required` isn't allowed next to a `$ref`. */
function headerRef(name: string, isAlways: boolean): string {
  return `#/components/headers/${name}${isAlways ? "-always" : ""}`;
}

/** Returns the `components.headers` that the paths refer to. */
export function headerComponents(paths: string): Json {
  const entries = Object.entries(RESPONSE_HEADERS).flatMap(([name, header]) =>
    [false, true]
      .filter((isAlways) => paths.includes(`"${headerRef(name, isAlways)}"`))
      .map((isAlways) => [
        headerRef(name, isAlways).split("/").at(-1),
        { ...header, ...(isAlways && { required: true }) },
      ]),
  );
  return Object.fromEntries(entries) as Json;
}

function contentOf(all: readonly PossibleResponse[], example: unknown): Json {
  const content: Json = {};
  for (const type of new Set(all.map((one) => one.type))) {
    const possible = all
      .filter((one) => one.type === type)
      .map(({ schema }) => JSON.stringify(schema));
    const schemas = [...new Set(possible)].map((text) => JSON.parse(text) as Json);
    content[type] = {
      schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas },
      ...(example !== undefined && type === "application/json" && { example }),
    };
  }
  return content;
}
