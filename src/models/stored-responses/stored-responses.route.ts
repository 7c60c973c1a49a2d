import * as z from "zod/mini";
import type { AppContext } from "../../shared/http/context.ts";
import { parseQuery, wholeNumberParameterWithDefault } from "../../shared/http/parse-body.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { creationTimeOfId } from "../../shared/id.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { callObject } from "../../shared/reach-object.ts";
import { listInputItems, parseStoredResponse, toResponseView } from "./items.ts";
import { RESPONSE_ID_PREFIX, createReadFilter } from "../../shared/contracts/stored-responses.ts";
import type {
  StoredResponsesMethods,
  ResponseOwnerFilter,
} from "../../shared/contracts/stored-responses.ts";

const ENCRYPTED_REASONING = "reasoning.encrypted_content";
const NOT_STREAMED = "Stored responses can't be streamed. Omit 'stream'.";

export async function readResponseRoute(c: AppContext) {
  const { searchParams } = new URL(c.req.url);
  if (searchParams.get("stream") === "true") return invalid(NOT_STREAMED, "stream");
  const id = idOf(c);
  const found = await callStoredResponses(c, (kept, seenBy) =>
    kept.recall({ previous: null, outputs: [id], inputs: [] }, seenBy),
  );
  if (!found.ok) return found;
  const text = found.value.outputs[id];
  if (text === undefined) return notFoundRefusal(id);
  const included = [...searchParams].some(
    ([name, value]) => name.startsWith("include") && value.split(",").includes(ENCRYPTED_REASONING),
  );
  return success(toResponseView(parseStoredResponse(text), included));
}

/** Handles DELETE /v1/responses/{id}. Also deletes all later turns of the conversation. */
export async function deleteResponseRoute(c: AppContext) {
  const id = idOf(c);
  const gone = await callStoredResponses(c, (kept, seenBy) => kept.forget(id, seenBy));
  if (!gone.ok) return gone;
  return gone.value
    ? success({ id, object: "response.deleted", deleted: true })
    : notFoundRefusal(id);
}

export const inputItemsQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 100, 20),
  order: z._default(z.enum(["asc", "desc"]), "desc"),
  after: z.optional(z.string("must be given once")),
});

export async function listInputItemsRoute(c: AppContext) {
  const page = parseQuery(inputItemsQuerySchema, c.req.url);
  if (!page.ok) return page;
  const { limit, order, after } = page.value;
  const id = idOf(c);
  const found = await callStoredResponses(c, (kept, seenBy) =>
    kept.recall({ previous: id, outputs: [], inputs: [] }, seenBy),
  );
  if (!found.ok) return found;
  if (found.value.links === null) return notFoundRefusal(id);
  const items = [...listInputItems(found.value.links)];
  if (order === "desc") items.reverse();
  const from = after === undefined ? 0 : items.findIndex((item) => item.id === after) + 1;
  if (after !== undefined && from === 0) return invalid("after must be an item's id.", "after");
  const data = items.slice(from, from + limit);
  return success({
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + limit < items.length,
  });
}

function callStoredResponses<T>(
  c: AppContext,
  call: (kept: StoredResponsesMethods, seenBy: ResponseOwnerFilter) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { admitted, member } = c.var;
  const id = idOf(c);
  if (creationTimeOfId(id, RESPONSE_ID_PREFIX) === null) {
    return Promise.resolve(notFoundRefusal(id));
  }
  const { orgId } = admitted.caller;
  return callObject(() => call(objectsOf(c.env).kept(orgId), createReadFilter(admitted, member)));
}

function idOf(c: AppContext): string {
  return c.req.param("id") ?? "";
}

function notFoundRefusal(id: string): Refusal {
  return refuse({ kind: "not_found", message: `Response with id '${id.slice(0, 64)}' not found.` });
}
