export type ImageHeader = {
  readonly type: "image/png" | "image/jpeg" | "image/webp";
  readonly width: number;
  readonly height: number;
};

export function imageHeader(bytes: Uint8Array): ImageHeader | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const found = png(view) ?? jpeg(view) ?? webp(view);
    return found !== null && found.width > 0 && found.height > 0 ? found : null;
  } catch {
    return null; // the file ends within its header
  }
}

const PNG = 0x89504e47;
const IHDR = 0x49484452;

function png(view: DataView): ImageHeader | null {
  if (view.getUint32(0) !== PNG || view.getUint32(12) !== IHDR) return null;
  return { type: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
}

const JPEG = 0xffd8;
/** Markers from c0 to cf start a frame, except these. */
const NO_FRAME = new Set([0xc4, 0xc8, 0xcc]);

function jpeg(view: DataView): ImageHeader | null {
  if (view.getUint16(0) !== JPEG) return null;
  for (let at = 2; view.getUint8(at) === 0xff;) {
    const marker = view.getUint8(at + 1);
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.has(marker)) {
      return { type: "image/jpeg", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    }
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xda)) return null; // no segment before a frame
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
  return null;
}

const RIFF = 0x52494646;
const WEBP = 0x57454250;
const LOSSY = 0x56503820;
const LOSSLESS = 0x5650384c;
const EXTENDED = 0x56503858;
const LOSSY_START = 0x9d012a;
const LOSSLESS_START = 0x2f;
const SIDE_BITS = 0x3fff;

function webp(view: DataView): ImageHeader | null {
  if (view.getUint32(0) !== RIFF || view.getUint32(8) !== WEBP) return null;
  const type = "image/webp";
  switch (view.getUint32(12)) {
    case LOSSY: {
      if ((view.getUint32(22) & 0xffffff) !== LOSSY_START) return null;
      const side = (at: number): number => view.getUint16(at, true) & SIDE_BITS;
      return { type, width: side(26), height: side(28) };
    }
    case LOSSLESS: {
      if (view.getUint8(20) !== LOSSLESS_START) return null;
      const bits = view.getUint32(21, true);
      return { type, width: (bits & SIDE_BITS) + 1, height: ((bits >>> 14) & SIDE_BITS) + 1 };
    }
    case EXTENDED: {
      const side = (at: number): number => (view.getUint32(at, true) & 0xffffff) + 1;
      return { type, width: side(24), height: side(27) };
    }
    default:
      return null;
  }
}
