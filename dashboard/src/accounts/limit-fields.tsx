/** The input fields for the limits of an account. They accept the same formats as the command line. */
import { SimpleGrid, TextInput } from '@mantine/core';
import type { LimitTexts } from './limits';

interface LimitFieldsProps {
  readonly limits: LimitTexts;
  readonly hasThresholds: boolean;
  readonly onChange: (limits: LimitTexts) => void;
}

const FIELDS: readonly (readonly [name: keyof LimitTexts, label: string, description: string])[] = [
  ['volume', 'Volume', 'Total number of messages, counted from this change on, or unlimited'],
  ['volumeExpires', 'Volume expires', 'A date (UTC) such as 2027-06-30, a duration such as 30d, or never'],
  ['rate', 'Rate', 'Such as 1000/1h, or none. Requests above the limit are refused with 403.'],
  [
    'throttle',
    'Throttle',
    'Such as 50/s, 50/s:200 with a burst, or none. Requests above the limit are refused with 429.',
  ],
  [
    'maxBounces',
    'Lock at hard bounces',
    'Share of the messages of the last 7 days, such as 10%; 100% disables the lock',
  ],
  [
    'maxComplaints',
    'Lock at complaints',
    'Share of the messages of the last 7 days, such as 0.15%; 100% disables the lock',
  ],
  ['maxAge', 'Maximum age', 'Such as 10m, or none. An older message expires.'],
  ['onlyTo', 'Only to', 'Such as @example.com,qa@example.org, or any. Messages to others are suppressed.'],
  ['unknownFields', 'Unknown fields', 'ignore, or refuse. Requests with unknown fields are refused with 400.'],
];
/** `createAccount` accepts no others. */
const FIELDS_OF_NEW_ACCOUNTS: ReadonlySet<keyof LimitTexts> = new Set(['volume', 'volumeExpires', 'rate', 'throttle']);

export function LimitFields({ limits, hasThresholds, onChange }: LimitFieldsProps) {
  const names = FIELDS.filter(([name]) => hasThresholds || FIELDS_OF_NEW_ACCOUNTS.has(name));
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      {names.map(([name, label, description]) => (
        <TextInput
          key={name}
          label={label}
          description={description}
          value={limits[name]}
          onChange={(event) => onChange({ ...limits, [name]: event.currentTarget.value })}
          autoComplete="off"
          spellCheck={false}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
        />
      ))}
    </SimpleGrid>
  );
}
