/** Maximum duration of an AAC frame in seconds: 2,048 samples at 7,350 Hz. */
export const AAC_FRAME_S_MAX = 0.28;
const OPUS_FRAME_S_MAX = 0.12;
/** Maximum seconds per frame at 8 kHz: 1,152 samples for MPEG audio, 1,536 for AC-3. */
const MPEG_FRAME_S_MAX = 0.15;
const AC3_FRAME_S_MAX = 0.2;
const TABLE_RATES = 13;
const EXPLICIT_RATE = 15;
/**
 * AAC object types with at most 2,048 samples per frame. Other types, such as ALS, can have 65,536.
 */
const AAC_OBJECTS: ReadonlySet<number> = new Set([1, 2, 3, 4, 17, 19, 20, 23, 39]);
/** AAC object types whose configuration contains a second sample rate and an inner type. */
const SBR_TYPES: ReadonlySet<number> = new Set([5, 29]);
/**
 * Maximum bytes of codec configurations and sample entries. Audio with longer ones counts as
 * infinitely long.
 */
const [AAC_BYTES, ENTRY_BYTES, VORBIS_BYTES] = [64, 4096, 65_536];

/**
 * Returns an AAC frame's maximum seconds, from its AudioSpecificConfig (ISO 14496-3). Returns
 * Infinity for a rate outside the standard's table, because that rate can be 1 Hz.
 */
function aacSeconds(config: Uint8Array): number {
  if (config.length < 2 || config.length > AAC_BYTES) return Infinity;
  const bits = Array.from(config, (byte) => byte.toString(2).padStart(8, "0")).join("");
  let at = 0;
  const readBits = (count: number): number =>
    Number.parseInt(bits.slice(at, (at += count)) || "0", 2);
  const readType = (): number => {
    const shortType = readBits(5);
    return shortType === 31 ? 32 + readBits(6) : shortType;
  };
  let type = readType();
  const rates = [readBits(4)];
  if (rates[0] !== EXPLICIT_RATE) readBits(4);
  if (SBR_TYPES.has(type)) {
    rates.push(readBits(4));
    type = readType();
  }
  const isKnown = AAC_OBJECTS.has(type) && rates.every((rate) => rate < TABLE_RATES);
  return isKnown && !LATER_RATE.test(bits) ? AAC_FRAME_S_MAX : Infinity;
}

/** Matches a later SBR configuration whose sample rate isn't in the standard's table. */
const LATER_RATE = /01010110111001011(?:1101|1110|1111)/;

/** Returns a frame's maximum seconds, from the codec header at `at`. */
export function getMaxOggFrameSeconds(bytes: Uint8Array, at: number): number {
  if (hasTextAt(bytes, at, "OpusHead")) return OPUS_FRAME_S_MAX;
  if (OGG_SILENT.some((name) => hasTextAt(bytes, at, name))) return 0;
  if (!hasTextAt(bytes, at, VORBIS) || at + 29 > bytes.length) return Infinity;
  const rate = [12, 13, 14, 15].reduce((sum, i) => sum + (bytes[at + i] ?? 0) * 256 ** (i - 12), 0);
  return 2 ** ((bytes[at + 28] ?? 0) >> 4) / 2 / Math.max(1, rate);
}

const VORBIS = "\u0001vorbis";
/** Signatures of Ogg streams without sound, such as an index or video. */
const OGG_SILENT = ["fishead\0", "\u0080theora"];

/** Returns a frame's maximum duration in seconds for its track's codec. */
export function getMaxMatroskaFrameSeconds(codec: string, config: Uint8Array): number {
  if (codec === "" || /^[VSBD]_/.test(codec)) return 0;
  if (codec.startsWith("A_OPUS")) return OPUS_FRAME_S_MAX;
  if (codec.startsWith("A_MPEG/L")) return MPEG_FRAME_S_MAX;
  if (codec.startsWith("A_AAC")) return aacSeconds(config);
  if (codec.startsWith("A_AC3")) return AC3_FRAME_S_MAX;
  if (codec !== "A_VORBIS" || config.length > VORBIS_BYTES) return Infinity;
  const headerPositions = positionsOf(config, VORBIS).map((at) =>
    getMaxOggFrameSeconds(config, at),
  );
  return headerPositions.length === 0 ? Infinity : Math.max(...headerPositions);
}

const MP4_SILENT =
  /^(?:avc[1-4]|hvc1|hev1|dvh[1e]|vp0[89]|av01|mp4v|s263|h263|jpeg|ap[a-z0-9]{2}|tx3g|text|tmcd|mebx|c608|wvtt|stpp)$/;

/** Returns a frame's maximum seconds, from its sample entry's name and data. */
export function getMaxMp4FrameSeconds(name: string, data: Uint8Array): number {
  if (name === "Opus") return OPUS_FRAME_S_MAX;
  if (name === ".mp3") return MPEG_FRAME_S_MAX;
  if (name === "ac-3") return AC3_FRAME_S_MAX;
  if (MP4_SILENT.test(name)) return 0;
  if (name !== "mp4a" || data.length > ENTRY_BYTES) return Infinity;
  const found = positionsOf(data, "esds").map((at) => esdsSeconds(data.subarray(at + 8)));
  return found.length === 0 ? Infinity : Math.max(...found);
}

const AAC_TYPES = new Set([0x40, 0x66, 0x67, 0x68]);
const MPEG_TYPES = new Set([0x69, 0x6b]);
const [STREAM, DECODER, CONFIG] = [3, 4, 5];

/** Reads the descriptors of an `esds` box (ISO 14496-1): stream, decoder, configuration. */
function esdsSeconds(data: Uint8Array): number {
  let at = 0;
  const open = (tag: number): number | null => {
    if (data[at] !== tag) return null;
    let length = 0;
    let byte = 128;
    for (at += 1; byte >= 128 && at < data.length; at += 1) {
      byte = data[at] ?? 0;
      length = length * 128 + (byte & 127);
    }
    return length;
  };
  if (open(STREAM) !== null) {
    const flags = data[at + 2] ?? 0;
    at += 3 + (flags & 0x80 ? 2 : 0);
    if (flags & 0x40) at += 1 + (data[at] ?? 0);
    if (flags & 0x20) at += 2;
  }
  if (open(DECODER) === null) return Infinity;
  const type = data[at] ?? 0;
  at += 13;
  if (MPEG_TYPES.has(type)) return MPEG_FRAME_S_MAX;
  const length = AAC_TYPES.has(type) ? open(CONFIG) : null;
  return length === null ? Infinity : aacSeconds(data.subarray(at, at + length));
}

function positionsOf(bytes: Uint8Array, text: string): number[] {
  const first = text.charCodeAt(0);
  const found: number[] = [];
  for (let at = bytes.indexOf(first); at !== -1; at = bytes.indexOf(first, at + 1)) {
    if (hasTextAt(bytes, at, text)) found.push(at);
  }
  return found;
}

export function hasTextAt(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}
