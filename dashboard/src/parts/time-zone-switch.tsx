/** The control that switches all times in the dashboard between UTC and local time. */
import { SegmentedControl } from '@mantine/core';
import { storeTimeZone } from './time-zone';
import { useTimeZone } from './use-time-zone';

export function TimeZoneSwitch() {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Time zone"
      value={useTimeZone()}
      onChange={(value) => storeTimeZone(value === 'local' ? 'local' : 'utc')}
      data={[
        { value: 'local', label: 'Local' },
        { value: 'utc', label: 'UTC' },
      ]}
    />
  );
}
