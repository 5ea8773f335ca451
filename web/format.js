// Formats numbers. Sizes have binary units and two decimals, as in every report of GhostGPU.

const UNITS = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

export function size(bytes) {
  for (const [unit, name] of UNITS) {
    if (bytes >= unit) return `${(bytes / unit).toFixed(2)} ${name}`;
  }
  return bytes === 1 ? "1 byte" : `${bytes} bytes`;
}

// Independent of the reader's locale, so that a report looks the same everywhere.
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function exactBytes(bytes) {
  return `${count(bytes)} bytes`;
}

export function percent(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–";
}

export function several(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function hexadecimal(address) {
  return `0x${address.toString(16)}`;
}

// The next round size for the marks of an axis: a small round number of a binary unit.
export function roundBytesAtLeast(bytes) {
  let unit = 1;
  while (unit * 1024 <= bytes) unit *= 1024;
  for (const factor of [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512]) {
    if (factor * unit >= bytes) return factor * unit;
  }
  return 1024 * unit;
}

export function roundCountAtLeast(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, number)));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= number) return factor * power;
  }
  return 10 * power;
}

// Axis marks need no trailing zeros.
export function shortSize(bytes) {
  return size(bytes).replace(/\.?0+ /, " ");
}
