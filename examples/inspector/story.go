package main

import "github.com/adkmemory/adkmemory/backends"

const app = "garden"

// conversation is what one person says to the agent, and what is known about them beforehand.
type conversation struct {
	user, session string
	known         []backends.Entry
	lines         []string
}

var conversations = []conversation{
	{"tomas", "compost", nil, []string{
		"Hello, I am Tomas from plot 4. My compost smells of ammonia since last week.",
		"I put in four buckets of grass and nothing else. We have straw from the stable on Mill Lane.",
		"The pile is 120 cm high and stands in full sun, next to the water tank.",
		"Thank you. I shall turn it on Saturday at 9:00 together with Ines.",
		"It has cooled down to 38 degrees since I mixed in the straw. Is that enough?",
	}},
	{"wanjiru", "balcony-tomatoes", nil, []string{
		"Hi! I have a balcony on the fourth floor that faces west, and three pots of 20 litres each.",
		"I want cherry tomatoes, the yellow ones that my grandmother grew in Nyeri.",
		"The wind is strong up here. Two stems broke on 3 June.",
		"We decided on Golden Nugget, because it stays below 60 cm and needs no stake.",
	}},
	{"mei", "spring-plan", []backends.Entry{
		{Kind: backends.KindKnowledge, Title: "Allergy", Text: "Mei is allergic to strawberries; no strawberry plants near plot 12."},
		{Kind: backends.KindKnowledge, Title: "Water", Text: "Plot 12 shares the water tank with plot 11; it holds 900 litres."},
	}, []string{
		"Good morning! I am Mei Tanaka from plot 12. I would like to plan the whole spring with you.",
		"The plot is 6 by 8 metres. The north side lies in the shadow of the school until eleven o'clock.",
		"Last year the slugs ate every lettuce. We decided not to use any poison, because of the hedgehogs.",
		"What does the sensor of the herb bed say?",
		"My neighbour Olu from plot 11 gave me forty garlic cloves. I planted them on 28 October in two rows.",
		"The budget of this year is 140 euros, and the seeds must be bought before 15 February at Hansen's.",
		"I want to grow climbing beans for the school kitchen. Their cook, Mrs Adeyemi, needs about 15 kg in July.",
		"Could you check the sensor of the bean bed too?",
		"Ravi will build the frames out of hazel. He comes on 4 April with his van, at about 14:00.",
		"The frames should be 180 cm high, so that the children of class 3b can still reach the beans.",
		"The water tank that I share with Olu holds 900 litres. It was empty twice last August, so we need mulch.",
		"We could get wood chips from the town for nothing. The number of the office is +49 40 555 0132.",
		"Please check the sensor of the lettuce bed, it felt rather dry to me.",
		"I decided to put the lettuce between the beans this time, where the afternoon sun does not reach it.",
		"My daughter Hana wishes for a pumpkin as big as she is. She is five, and 108 cm tall.",
		"The pumpkin variety shall be Atlantic Giant. I have ordered two plants, order number GH-20931, for 12.80 euros.",
		"The garden party is on 20 June at 16:00. We expect thirty people, and Olu brings the grill.",
		"For the party I would like to have sweet peas at the gate, the ones that smell, in white and violet.",
		"What does the sensor of the pumpkin bed say this week?",
		"Mrs Adeyemi has asked for borlotti beans instead, 15 kg as before. That is fine with me.",
		"The hedgehogs have moved in behind the shed! Nobody should burn the pile of leaves there until April.",
		"Ravi has hurt his back, so the frames come on 11 April now. His sister Priya will help us carry.",
		"Hansen's has no borlotti left. I bought two packets at the market for 7.60 euros altogether.",
		"The town will bring 2 cubic metres of wood chips on 2 May, between 8:00 and 10:00. I must open the gate.",
		"Please look at the sensor of the garlic bed for me.",
		"Some of the garlic has rust. Olu thinks that we should cut the leaves off and wait; I agree.",
		"Hana has drawn a scarecrow. It shall stand next to the pumpkin and wear my old blue raincoat.",
		"Are there strawberries anywhere near my plot? The class would like to bring some to the garden party.",
		"The school wants to visit us on 9 June with 24 children. I said yes, from 10:00 to 11:30.",
		"Remind me what is still to be done on the plot before the garden party, please.",
	}},
}

var advice = []string{
	"That sounds like a good plan. Cover the soil with a hand's breadth of mulch as soon as it has warmed up, and leave a " +
		"ring free around every stem. Water in the morning and rarely, but then plenty, so that the roots grow downwards.",
	"Let the seedlings stand outside for an hour more every day before they move. A fleece at night is enough against late " +
		"frost; it weighs nothing, lets the rain through, and can be used again for at least three years.",
	"I would sow half of it now and the rest in two weeks, so that not everything is ripe at once. Mark the rows with sticks, " +
		"for the weeds will be quicker, and thin out early: plants that stand too close stay small and fall ill.",
	"Mix wet and dry, a bucket of green for every bucket of brown, and turn the pile when it cools down. If it smells, it needs " +
		"air; if nothing happens, it needs water. After ten weeks in summer it is ready for the beds.",
	"A board on the path collects the slugs overnight, and in the morning they can be carried away. Keep the edges dry and " +
		"water early rather than late, because they come out with the evening dew.",
}
