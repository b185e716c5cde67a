import fc from 'fast-check';

const atext = fc.constantFrom(..."abcxyzABCXYZ0189!#$%&'*+-/=?^_`{|}~");
const unicodeText = fc.constantFrom('é', 'ü', 'ß', 'Å', '用', '户', 'я', 'Ж', 'ع', 'א', '😀', 'i', 'ﬁ', 'ǆ');
const quotedContent = fc.constantFrom(...'abc xyz.@,;:<>()[]', '\\"', '\\\\', '\\a', '\\ ', 'é', '用');

const atom = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: atext, minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.oneof(atext, unicodeText), minLength: 1, maxLength: 4 }) },
);
const dotAtom = fc.array(atom, { minLength: 1, maxLength: 3 }).map((atoms) => atoms.join('.'));
const quotedString = fc.string({ unit: quotedContent, maxLength: 15 }).map((content) => `"${content}"`);

const letter = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCXYZ');
const innerCharacter = fc.constantFrom(...'abcxyz0189-');
const label = fc
  .tuple(letter, fc.string({ unit: innerCharacter, maxLength: 8 }), letter)
  .map((parts) => parts.join(''))
  .filter((text) => text.slice(2, 4) !== '--');
const idnLabel = fc.constantFrom('bücher', 'straße', '例え', 'пример', 'BÜRO', 'xn--bcher-kva');
const domain = fc
  .tuple(
    fc.array(fc.oneof({ weight: 4, arbitrary: label }, { weight: 1, arbitrary: idnLabel }), {
      minLength: 1,
      maxLength: 4,
    }),
    label,
  )
  .map(([labels, topLabel]) => [...labels, topLabel].join('.'));

/** Valid addresses of every kind: dot-atom, quoted, internationalized. */
export const addressText: fc.Arbitrary<string> = fc
  .tuple(fc.oneof({ weight: 3, arbitrary: dotAtom }, { weight: 1, arbitrary: quotedString }), domain)
  .filter(([localPart]) => Buffer.byteLength(localPart) <= 64)
  .map(([localPart, host]) => `${localPart}@${host}`);
