/** The boxes for an account's limits, in the words of the command line. */
import { SimpleGrid, TextInput } from '@mantine/core';
import type { Limits } from './limits';

interface LimitFieldsProps {
  readonly limits: Limits;
  readonly thresholds: boolean;
  readonly onChange: (limits: Limits) => void;
}

const FIELDS: readonly (readonly [name: keyof Limits, label: string, description: string])[] = [
  ['volume', 'Volume', 'Emails in all, counted from the change on, or unlimited'],
  ['volumeExpires', 'Volume expires', 'A date (UTC) such as 2027-06-30, a time from now such as 30d, or never'],
  ['rate', 'Rate', 'Such as 1000/1h, over which 403 is answered, or none'],
  ['throttle', 'Throttle', 'Such as 50/s, or 50/s:200 with a burst, over which 429 is answered, or none'],
  ['maxBounces', 'Locks at hard bounces', 'Of the emails of 7 days, such as 10%; 100% never locks'],
  ['maxComplaints', 'Locks at complaints', 'Of the emails of 7 days, such as 0.15%; 100% never locks'],
];

export function LimitFields({ limits, thresholds, onChange }: LimitFieldsProps) {
  const shown = FIELDS.filter(([name]) => thresholds || !name.startsWith('max'));
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      {shown.map(([name, label, description]) => (
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
