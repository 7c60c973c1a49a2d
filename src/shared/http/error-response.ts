/** A failure's HTTP response. `extra` is added to the body's `error` object. */
export type ErrorResponse = {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly param?: string | null;
  readonly extra?: Readonly<Record<string, number | string>>;
  readonly headers?: Readonly<Record<string, string>>;
};
