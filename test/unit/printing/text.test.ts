import { expect, it } from 'vitest';
import { toSentence } from '../../../src/printing/text.ts';

it('a full stop is added only if the text ends without punctuation', () => {
  const texts = ['550 No such user', '550 No such user.', 'is the mail server running there?', 'Stop!'];
  expect(texts.map(toSentence)).toEqual([
    '550 No such user.',
    '550 No such user.',
    'is the mail server running there?',
    'Stop!',
  ]);
});
