import { FormFile } from "../../shared/http/form.ts";
import { fromBase64 } from "./base64.ts";

const DATA_URL = /^data:((audio|video|image)\/[\w.+-]{1,64});base64,([A-Za-z0-9+/]{2,}(={0,2}))$/;

/**
 * Reports whether the base64 of a data URL can be decoded. Padding can be absent, but not partial.
 */
export function isDataUrl(url: string, media: readonly string[]): boolean {
  const [, , group = "", data = "", padding = ""] = DATA_URL.exec(url) ?? [];
  if (!media.includes(group)) return false;
  return padding === "" ? data.length % 4 !== 1 : data.length % 4 === 0;
}

export function fileOfDataUrl(url: string): FormFile {
  const [, type = "", group = "", data = ""] = DATA_URL.exec(url) ?? [];
  return new FormFile(`${group}.${type.split("/")[1]}`, type, fromBase64(data));
}
