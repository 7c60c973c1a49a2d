import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MultipartForm } from "../../src/models/core/outgoing-body.ts";
import {
  parseFormBoundary,
  FormFile,
  serializeFormForHash,
  formToObject,
  parseForm,
} from "../../src/shared/http/form.ts";
import type { FormField } from "../../src/shared/http/form.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const JUNK = fc.constantFrom("\r\n", "\r", "\n", "--", "--b", "\r\n--", "\r\n--b", "x", "é");
const bytes = fc
  .tuple(fc.array(JUNK), fc.uint8Array())
  .map(([junk, more]) => new Uint8Array([...utf8(junk.join("")), ...more]));
const word = fc.stringMatching(/^[a-z_]{1,20}$/);
const value = fc.oneof(
  fc.string(),
  fc.array(JUNK).map((junk) => junk.join("")),
  fc.tuple(word, bytes).map(([name, all]) => new FormFile(`${name}.mp3`, "audio/mpeg", all)),
);

function formOf(text: string): readonly FormField[] {
  return [["file", new FormFile("a", "a/b", utf8(text))]];
}

async function sent(form: MultipartForm): Promise<Uint8Array> {
  return new Uint8Array(await new Response(form.stream()).arrayBuffer());
}

function parsed(body: Uint8Array, type: string): readonly FormField[] | null {
  const fields = parseForm(body, parseFormBoundary(type) ?? "none");
  return fields.ok ? fields.value : null;
}

describe("the form parser", () => {
  it("returns all fields of a form unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(word, value)), async (fields) => {
        const form = new MultipartForm(fields);
        expect(parsed(await sent(form), form.type)).toEqual(fields);
      }),
    );
  });

  it("returns the fields of a FormData body, with each file as a view of the body", async () => {
    const data = new FormData();
    data.append("model", "a/b");
    data.append("languages[]", "en");
    data.append("languages[]", "de");
    data.append("file", new File(["\r\n--\r\n"], "a.mp3", { type: "audio/mpeg" }));
    const request = new Response(data);
    const body = new Uint8Array(await request.arrayBuffer());
    const fields = parsed(body, request.headers.get("content-type") ?? "");
    const object = formToObject(fields ?? []);
    expect(object).toMatchObject({
      ok: true,
      value: { model: "a/b", languages: ["en", "de"], file: { filename: "a.mp3" } },
    });
    const file = fields?.find(([name]) => name === "file")?.[1];
    expect(file instanceof FormFile && file.bytes.buffer === body.buffer).toBe(true);
  });

  it("returns the same fingerprint for forms with the same fields, even if their boundaries differ", async () => {
    const [one, two] = await Promise.all(
      [0, 1].map(async () => {
        const form = new MultipartForm(formOf("same"));
        return serializeFormForHash(parsed(await sent(form), form.type) ?? []);
      }),
    );
    expect(one).toEqual(two);
    expect(await serializeFormForHash(formOf("same"))).toEqual(one);
    expect(await serializeFormForHash(formOf("same."))).not.toEqual(one);
  });

  const FIELD = 'content-disposition: form-data; name="a"';
  it.each([
    ["no end", `--b\r\n${FIELD}\r\n\r\nx`],
    ["a longer boundary", `--bb\r\n${FIELD}\r\n\r\nx\r\n--b--`],
    ["text before the boundary", `x\r\n--b\r\n${FIELD}\r\n\r\nx\r\n--b--`],
    ["a field without a name", "--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--"],
    ["a field without a header", "--b\r\n\r\nx\r\n--b--"],
    ["an encoded field", `--b\r\n${FIELD}\r\ncontent-transfer-encoding: base64\r\n\r\nx\r\n--b--`],
    ["an endless header", `--b\r\n${FIELD}${"x".repeat(5000)}\r\n\r\nx\r\n--b--`],
    ["too many fields", `${`--b\r\n${FIELD}\r\n\r\nx\r\n`.repeat(257)}--b--`],
    ["no content", ""],
  ])("rejects a form with %s", (_, text) => {
    expect(parsed(utf8(text), "multipart/form-data; boundary=b")).toBeNull();
  });

  it.each([
    ["Grüße \u2603.mp3", "audio/mpeg", "Gr__e__.mp3", "audio/mpeg"],
    ["a\\b;c.m4a", "audio/webm;codecs=opus", "a_b;c.m4a", "audio/webm"],
    ["", "sound", "file", "application/octet-stream"],
  ])(
    "returns a safe name and type for a file %j of the type %j",
    async (filename, type, ...plain) => {
      const form = new MultipartForm([["file", new FormFile(filename, type, utf8("x"))]]);
      const [[, file] = []] = parsed(await sent(form), form.type) ?? [];
      expect(file instanceof FormFile && [file.filename, file.type]).toEqual(plain);
    },
  );

  it("rejects a form that contains a field twice", () => {
    const twice = formToObject([
      ["model", "a"],
      ["model", "b"],
    ]);
    expect(twice).toMatchObject({ ok: false, failure: { param: "model" } });
  });

  it.each([
    ["multipart/form-data; boundary=x", "x"],
    ['Multipart/Form-Data; boundary="a b"', "a b"],
    ["multipart/form-data; charset=utf-8; boundary=x", "x"],
    ["multipart/form-data;boundary=x ; charset=utf-8", "x"],
    ["multipart/form-data; xboundary=x", null],
    ["multipart/form-data", null],
    ["multipart/mixed; boundary=x", null],
    [`multipart/form-data; boundary=${"x".repeat(71)}`, null],
    ["application/json", null],
  ])("finds the boundary in the content type %s", (type, boundary) => {
    expect(parseFormBoundary(type)).toBe(boundary);
  });

  it("reads the slowest possible form of 20 MiB within a second", () => {
    const head = utf8(`--b\r\n${FIELD}; filename="x"\r\n\r\n`);
    const body = new Uint8Array(20 * 1024 * 1024).fill(13);
    body.set(head);
    const started = performance.now();
    expect(parsed(body, "multipart/form-data; boundary=b")).toBeNull();
    expect(performance.now() - started).toBeLessThan(1000);
  });
});
