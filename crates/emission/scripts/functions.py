import argparse

import torch
from torch.optim import Adam
from torch.utils.data import DataLoader
from tqdm import tqdm

from models import build


def train(model, loader, optimizer, criterion, device):
	model.train()
	for i, (images, labels) in enumerate(tqdm(loader)):
		images, labels = images.to(device), labels.to(device)
		loss = criterion(model(images), labels)
		loss.backward()
		torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
		optimizer.step()
		optimizer.zero_grad()


def evaluate(model, loader, device):
	model.eval()
	hits = 0
	for images, labels in loader:
		hits += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
	return hits


def main(args):
	device = "cuda"
	model = build().to(device)
	optimizer = Adam(model.parameters(), args.lr, (0.9, 0.95), 1e-8, 0.01)
	train_loader = DataLoader(args.train, batch_size=args.batch_size, drop_last=True)
	val_loader = DataLoader(args.val, 256)
	for epoch in range(args.epochs):
		train(model, train_loader, optimizer, torch.nn.CrossEntropyLoss(), device)
		evaluate(model, val_loader, device)
