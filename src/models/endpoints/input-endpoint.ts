import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { KINDS } from "../../shared/kinds.ts";
import type { InputKind } from "../../shared/kinds.ts";
import { paramOfInput } from "../core/endpoint-adapter.ts";
import type { EndpointAdapter, ResponseWriter } from "../core/endpoint-adapter.ts";
import type { InputRequest } from "../core/kinds.ts";

type ParsedBody = { readonly user: string | null };

type InputEndpoint<P> = Pick<EndpointAdapter, "name" | "takesForms"> & {
  readonly kind: InputKind;
  /** The field with the input, for errors about its length. */
  readonly input: string;
  readonly path?: EndpointAdapter["path"];
  readonly idPrefix?: string;
  readonly parse: (body: object) => Result<P>;
  readonly request: (parsed: P) => InputRequest;
  readonly reply: (parsed: P) => ResponseWriter;
};

export function inputEndpoint<P extends ParsedBody>(given: InputEndpoint<P>): EndpointAdapter {
  const {
    name,
    kind,
    input,
    path,
    takesForms,
    idPrefix = "chatcmpl-",
    parse,
    request,
    reply,
  } = given;
  return {
    name,
    path: path ?? KINDS[kind].path,
    dialect: null,
    idPrefix,
    ...(takesForms && { takesForms }),
    parse: (value) => {
      const parsed = parse(value);
      if (!parsed.ok) return parsed;
      return success({
        request: request(parsed.value),
        user: parsed.value.user,
        dropped: [],
        paramOf: paramOfInput(input),
        reply: reply(parsed.value),
        native: null,
      });
    },
  };
}
