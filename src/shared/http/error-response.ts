/** The HTTP form of a failure. `extra` goes into `error`, where SDKs find it. */
export type ErrorResponse = {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly param?: string | null;
  readonly extra?: Readonly<Record<string, number | string>>;
  readonly headers?: Readonly<Record<string, string>>;
};
