// Reads the data inside the page: base64, deflate, then a JSON document and columns of numbers.
// crates/report/src/html/section.rs describes the layout.

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Decodes the parts of a section with pauses between them, so that the page stays responsive.
export async function readSection(name) {
  const pieces = [];
  // A copy, because the live list shrinks with every element that is removed.
  for (const element of [...document.getElementsByClassName(`data-${name}`)]) {
    pieces.push(bytesOfBase64(element.textContent));
    // Otherwise these texts would take half of the page's memory.
    element.remove();
    await pause();
  }
  const packed = new Blob(pieces).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(packed).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return { document: JSON.parse(text), columns: new Uint8Array(buffer, 4 + length) };
}

export function pause() {
  return new Promise((resolve) => setTimeout(resolve));
}

// A column's numbers. `Kind` is the array to hold them: Float64Array is exact up to 2^53.
export function readColumn(section, name, Kind = Float64Array) {
  const { offset, count: length, delta } = section.document.columns[name];
  const bytes = section.columns;
  const numbers = new Kind(length);
  let at = offset;
  let sum = 0;
  for (let i = 0; i < length; i++) {
    let byte = bytes[at++];
    let number = byte & 127;
    // Multiplied instead of shifted, because shifts are limited to 32 bits.
    for (let scale = 128; byte >= 128; scale *= 128) {
      byte = bytes[at++];
      number += (byte & 127) * scale;
    }
    if (delta) {
      sum += number % 2 === 0 ? number / 2 : -(number + 1) / 2;
      numbers[i] = sum;
    } else {
      numbers[i] = number;
    }
  }
  return numbers;
}
