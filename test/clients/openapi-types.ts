/** Operations whose response is a CSV or audio file. */
export const NOT_JSON: readonly string[] = ["GET /v1/exports/focus", "POST /v1/audio/speech"];

/**
 * Compiled by test/clients/openapi.test.ts together with openapi-typescript's types and the
 * console's own.
 */
export const AGREEMENT = `
import type { paths } from "./openapi";
import type { Calls } from "./types";

type Operation<N> = N extends \`\${infer M} \${infer P}\`
  ? P extends keyof paths ? Lowercase<M> extends keyof paths[P] ? paths[P][Lowercase<M>] : never : never
  : never;
type Json<T> = T extends { content: { "application/json": infer J } } ? J : never;
type Success<R> = { [S in keyof R]: S extends 200 | 201 | 202 | 204 ? Json<R[S]> : never }[keyof R];
export type Answer<N> = Operation<N> extends { responses: infer R } ? Success<R> : never;
export type Body<N> = Operation<N> extends { requestBody?: infer B }
  ? [NonNullable<B>] extends [never] ? undefined : Json<NonNullable<B>> : undefined;
type Query<N> = Operation<N> extends { parameters: { query?: infer Q } }
  ? [Q] extends [never] | [undefined] ? {} : NonNullable<Q> : never;

/** Fields that have a name; what else an object may have says no type. */
type Named<T> = { -readonly [K in keyof T as string extends K ? never : number extends K ? never : K]: Plain<T[K]> };
/** Without what a type's text differs in: readonly, intersections, and the two ways to say "any object". */
type Plain<T> = T extends readonly (infer U)[] ? Plain<U>[]
  : T extends object
    ? [keyof Named<T>] extends [never]
      ? string extends keyof T ? { [name: string]: [T[string & keyof T]] extends [never] ? unknown : Plain<T[string & keyof T]> } : {}
      : Named<T>
    : T;
type Same<A, B> = (<X>() => X extends Plain<A> ? 1 : 2) extends <X>() => X extends Plain<B> ? 1 : 2 ? true : false;
type Names = { [P in keyof paths]: {
  [M in keyof paths[P]]-?: M extends "parameters" ? never : paths[P][M] extends { responses: object }
    ? \`\${Uppercase<M & string>} \${P & string}\` : never }[keyof paths[P]] }[keyof paths];
declare function none<T extends never>(): T;
type InJson = Exclude<keyof Calls, ${NOT_JSON.map((name) => JSON.stringify(name)).join(" | ")}>;
none<{
  [N in InJson]:
    | (Same<Answer<N>, Calls[N]["answer"]> extends true ? never : \`\${N} answer\`)
    | (Same<Body<N>, Calls[N]["body"]> extends true ? never : \`\${N} body\`)
    | (Same<Query<N>, Calls[N]["query"]> extends true ? never : \`\${N} query\`);
}[InJson]>();
none<Exclude<Names, keyof Calls>>();
none<Exclude<keyof Calls, Names>>();
`;
